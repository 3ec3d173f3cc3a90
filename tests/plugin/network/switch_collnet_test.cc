// The example plugin switch_collnet, in all versions: what comes out of its operations.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "device/number/number.h"
#include "plugin/network/switch_nodes.h"

namespace tutti::test {
namespace {

using plugin::CollNetBuffer;
using plugin::CollNetReduction;
using plugin::CollNetWindow;

constexpr ncclRedOp_t kOps[] = {ncclSum, ncclProd, ncclMax, ncclMin};

// ---- what is right: written for this test, over the conversions of the kernels

float wide(float value) {
  return value;
}
double wide(double value) {
  return value;
}
template <class T>
requires std::is_integral_v<T> T wide(T value) {
  return value;
}
template <class T>
requires std::is_class_v<T>
float wide(T value) {
  return toFloat(value);
}
template <class T, class W>
T narrow(W value) {
  if constexpr (std::is_same_v<T, device::Half>) {
    return device::toHalf(value);
  } else if constexpr (std::is_same_v<T, device::BFloat16>) {
    return device::toBFloat16(value);
  } else if constexpr (std::is_class_v<T>) {
    return device::toFloat8<T>(value);
  } else {
    return value;
  }
}
template <class W>
W combined(ncclRedOp_t op, W a, W b) {
  switch (op) {
    case ncclProd:
      return device::multiply(a, b);
    case ncclMax:
      return device::larger(a, b);
    case ncclMin:
      return device::lesser(a, b);
    default:
      return device::add(a, b);
  }
}
template <class T>
std::vector<char> reference(ncclRedOp_t op, const std::vector<std::vector<char>>& inputs) {
  std::vector<char> result(inputs[0].size());
  for (std::size_t i = 0; i + sizeof(T) <= result.size(); i += sizeof(T)) {
    T element;
    std::memcpy(&element, inputs[0].data() + i, sizeof(T));
    auto total = wide(element);
    for (std::size_t n = 1; n < inputs.size(); ++n) {
      std::memcpy(&element, inputs[n].data() + i, sizeof(T));
      total = combined(op, total, wide(element));
    }
    element = narrow<T>(total);
    std::memcpy(result.data() + i, &element, sizeof(T));
  }
  return result;
}
std::vector<char> expected(CollNetReduction reduction, const std::vector<std::vector<char>>& inputs) {
  switch (reduction.type) {
    case ncclInt8:
      return reference<std::int8_t>(reduction.op, inputs);
    case ncclUint8:
      return reference<std::uint8_t>(reduction.op, inputs);
    case ncclInt32:
      return reference<std::int32_t>(reduction.op, inputs);
    case ncclUint32:
      return reference<std::uint32_t>(reduction.op, inputs);
    case ncclInt64:
      return reference<std::int64_t>(reduction.op, inputs);
    case ncclUint64:
      return reference<std::uint64_t>(reduction.op, inputs);
    case ncclFloat16:
      return reference<device::Half>(reduction.op, inputs);
    case ncclBfloat16:
      return reference<device::BFloat16>(reduction.op, inputs);
    case ncclFloat32:
      return reference<float>(reduction.op, inputs);
    case ncclFloat64:
      return reference<double>(reduction.op, inputs);
    case ncclFloat8e4m3:
      return reference<device::Float8E4M3>(reduction.op, inputs);
    case ncclFloat8e5m2:
      return reference<device::Float8E5M2>(reduction.op, inputs);
    case ncclNumTypes:
      break;
  }
  return {};
}

/// Bits of any kind: all numbers, infinities, NaNs of every payload.
std::vector<char> anyBits(std::size_t bytes, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<char> made(bytes);
  for (char& byte : made) byte = static_cast<char>(random() >> 7);
  return made;
}

class SwitchCollNet : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, SwitchCollNet, testing::Values(6, 7, 8, 9, 10, 11, 12),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

/// Versions 6 and 7 cannot do it.
class SwitchCollNetWindows : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Versions, SwitchCollNetWindows, testing::Values(8, 9, 10, 11, 12),
                         [](const auto& test) { return "V" + std::to_string(test.param); });

TEST_P(SwitchCollNet, ReducesAllTypesByAllOperations) {
  constexpr int kNodes = 3;
  constexpr std::size_t kBytes = 2048;
  SwitchNodes nodes(GetParam(), kNodes);
  ASSERT_TRUE(nodes.connect());
  std::vector<std::vector<char>> inputs;
  for (unsigned i = 0; i < kNodes; ++i) inputs.push_back(anyBits(kBytes, i + 1));
  nodes.each([&](SwitchNode& node, int number) {
    SwitchNode::Area send(node, kBytes);
    SwitchNode::Area recv(node, kBytes);
    send.bytes = inputs[static_cast<std::size_t>(number)];
    for (int type = 0; type < ncclNumTypes; ++type) {
      for (const ncclRedOp_t op : kOps) {
        const CollNetReduction reduction{static_cast<ncclDataType_t>(type), op};
        EXPECT_TRUE(node.net->reduces(reduction).value());
        const auto bytes = node.allReduce(send.whole(), recv.whole(), reduction);
        ASSERT_TRUE(bytes.ok());
        EXPECT_EQ(bytes.value(), static_cast<int>(kBytes));
        EXPECT_EQ(recv.bytes, expected(reduction, inputs)) << "type " << type << " op " << op << " node " << number;
      }
    }
  });
}

TEST_P(SwitchCollNet, ReducesInPlaceAndFromAnyAddress) {
  SwitchNodes nodes(GetParam(), 4);
  ASSERT_TRUE(nodes.connect());
  nodes.each([&](SwitchNode& node, int number) {
    SwitchNode::Area area(node, 13);
    const float value = static_cast<float>(number) + 0.5F;
    for (int i = 0; i < 3; ++i) std::memcpy(area.bytes.data() + 1 + 4 * i, &value, sizeof(value));
    const CollNetBuffer part = area.part(1, 12);
    EXPECT_TRUE(node.allReduce(part, part, {ncclFloat32, ncclSum}).ok());
    float sum = 0;
    for (int i = 0; i < 3; ++i) {
      std::memcpy(&sum, area.bytes.data() + 1 + 4 * i, sizeof(sum));
      EXPECT_EQ(sum, 8.0F);
    }
    EXPECT_EQ(area.bytes[0], 0);
  });
}

TEST_P(SwitchCollNet, HasSeveralOperationsUnderWay) {
  constexpr int kOperations = 40;
  constexpr std::size_t kBytes = 70000;
  SwitchNodes nodes(GetParam(), 2);
  ASSERT_TRUE(nodes.connect());
  nodes.each([&](SwitchNode& node, int number) {
    std::vector<std::unique_ptr<SwitchNode::Area>> areas;
    std::vector<void*> requests;
    int refusals = 0;
    for (int i = 0; i < kOperations; ++i) {
      areas.push_back(std::make_unique<SwitchNode::Area>(node, kBytes));
      std::fill(areas.back()->bytes.begin(), areas.back()->bytes.end(), static_cast<char>(i + number));
      const auto post = [&] {
        return node.net->iallreduce(node.connection, areas.back()->whole(), areas.back()->whole(),
                                    {ncclUint8, ncclMax});
      };
      auto request = post();
      // There are 16 requests: the first must be done for the seventeenth to be posted.
      while (request.ok() && request.value() == nullptr) {
        ++refusals;
        ASSERT_FALSE(requests.empty());
        EXPECT_EQ(node.finished(requests.front()).value(), static_cast<int>(kBytes));
        requests.erase(requests.begin());
        request = post();
      }
      requests.push_back(request.value());
      EXPECT_LE(requests.size(), 16U);
    }
    for (void* request : requests) EXPECT_EQ(node.finished(request).value(), static_cast<int>(kBytes));
    EXPECT_EQ(refusals, kOperations - 16);
    for (int i = 0; i < kOperations; ++i) {
      EXPECT_EQ(areas[static_cast<std::size_t>(i)]->bytes, std::vector<char>(kBytes, static_cast<char>(i + 1)));
    }
  });
}

TEST_P(SwitchCollNetWindows, AreGathered) {
  constexpr std::size_t kNodes = 3;
  constexpr std::size_t kBytes = 10;  // of a node
  SwitchNodes nodes(GetParam(), kNodes);
  ASSERT_TRUE(nodes.connect());
  ASSERT_TRUE(nodes.at(0).net->gathers());
  std::vector<char> all = anyBits(kNodes * kBytes, 5);
  nodes.each([&](SwitchNode& node, int number) {
    SwitchNode::Area send(node, kBytes);
    SwitchNode::Area recv(node, all.size());
    const std::size_t begin = static_cast<std::size_t>(number) * kBytes;
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(begin), kBytes, send.bytes.begin());
    for (std::size_t offset = 0; offset < all.size(); offset += 3) {
      for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{17}, all.size() - offset}) {
        if (offset + bytes > all.size()) continue;
        const std::size_t from = std::clamp(begin, offset, offset + bytes);
        const std::size_t to = std::clamp(begin + kBytes, offset, offset + bytes);
        const CollNetBuffer own = from < to ? send.part(from - begin, to - from) : CollNetBuffer{};
        std::fill(recv.bytes.begin(), recv.bytes.end(), '\0');
        const auto came = node.finished(node.posted([&] {
          return node.net->iallgather(node.connection, own, recv.part(0, bytes), {kBytes, offset, bytes});
        }));
        EXPECT_EQ(came.value(), static_cast<int>(bytes));
        EXPECT_TRUE(std::equal(recv.bytes.begin(), recv.bytes.begin() + static_cast<std::ptrdiff_t>(bytes),
                               all.begin() + static_cast<std::ptrdiff_t>(offset)))
            << "window of " << bytes << " at " << offset;
      }
    }
  });
}

TEST_P(SwitchCollNetWindows, AreScattered) {
  constexpr std::size_t kNodes = 3;
  constexpr std::size_t kElements = 5;  // of a node
  constexpr std::size_t kBytes = kElements * sizeof(std::uint32_t);
  constexpr std::size_t kAll = kNodes * kElements;
  SwitchNodes nodes(GetParam(), kNodes);
  ASSERT_TRUE(nodes.connect());
  ASSERT_TRUE(nodes.at(0).net->scatters());
  nodes.each([&](SwitchNode& node, int number) {
    SwitchNode::Area send(node, kNodes * kBytes);
    SwitchNode::Area recv(node, kBytes);
    for (std::uint32_t i = 0; i < kAll; ++i) {
      const std::uint32_t value = 1000 * i + static_cast<std::uint32_t>(number);
      std::memcpy(send.bytes.data() + i * sizeof(value), &value, sizeof(value));
    }
    for (std::size_t begin = 0; begin < kAll; ++begin) {
      for (std::size_t end = begin + 1; end <= kAll; end += 4) {
        const CollNetWindow window{kBytes, begin * sizeof(std::uint32_t), (end - begin) * sizeof(std::uint32_t)};
        const std::size_t own = static_cast<std::size_t>(number) * kElements;
        const std::size_t from = std::clamp(own, begin, end);
        const std::size_t to = std::clamp(own + kElements, begin, end);
        const std::size_t bytes = (to - from) * sizeof(std::uint32_t);
        const auto came = node.finished(node.posted([&] {
          return node.net->ireducescatter(node.connection, send.part(window.offset, window.bytes),
                                          bytes > 0 ? recv.part(0, bytes) : CollNetBuffer{}, window,
                                          {ncclUint32, ncclSum});
        }));
        ASSERT_EQ(came.value(), static_cast<int>(bytes));
        for (std::size_t i = from; i < to; ++i) {
          std::uint32_t value = 0;
          std::memcpy(&value, recv.bytes.data() + (i - from) * sizeof(value), sizeof(value));
          EXPECT_EQ(value, kNodes * 1000 * i + 3) << "element " << i << " of window " << begin << " to " << end;
        }
      }
    }
  });
}

}  // namespace
}  // namespace tutti::test
