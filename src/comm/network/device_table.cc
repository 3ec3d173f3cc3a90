#include "comm/network/device_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "comm/network/nic_fusion.h"

namespace tutti::comm {

namespace {

const plugin::NetProperties& deviceOf(const DeviceTable& table, int number) {
  return table.all[static_cast<std::size_t>(number)];
}

}  // namespace

std::vector<int> firstNumbers(int count) {
  std::vector<int> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Result<DeviceTable> readDevices(plugin::NetDevices& net, int physical) {
  DeviceTable table;
  ASSIGN(const int count, net.devices());
  for (int device = 0; device < count; ++device) {
    ASSIGN(plugin::NetProperties properties, net.properties(device));
    table.all.push_back(std::move(properties));
  }
  table.usable =
      physical < 0 || count <= physical ? firstNumbers(count) : devicesToUse(table.all, physical, labelOf(net));
  return table;
}

std::vector<int> sameDevices(const DeviceTable& net, const DeviceTable& collNet) {
  std::vector<int> same(net.all.size(), -1);
  for (const int number : net.usable) {
    const auto found = std::find_if(collNet.usable.begin(), collNet.usable.end(), [&](int other) {
      return deviceOf(collNet, other).name == deviceOf(net, number).name;
    });
    if (found != collNet.usable.end()) same[static_cast<std::size_t>(number)] = *found;
  }
  return same;
}

std::vector<std::string> collNetLines(const DeviceTable& net, const DeviceTable& collNet) {
  const std::vector<int> same = sameDevices(net, collNet);
  std::vector<std::string> lines;
  std::vector<int> both;
  std::vector<int> alone = collNet.usable;
  for (const int number : net.usable) {
    const int other = same[static_cast<std::size_t>(number)];
    if (other < 0) continue;
    both.push_back(number);
    std::erase(alone, other);
    if (other == number) continue;
    lines.push_back(
        fmt::format("device {} has number {} here and {} in the network", deviceOf(net, number).name, other, number));
  }
  if (!alone.empty()) {
    lines.push_back(fmt::format("{} not used: the network, which must have devices of the same names, has {}",
                                namesOf(collNet.all, alone), namesOf(net.all, net.usable)));
  }
  lines.push_back(both.empty() ? "no device is left for collectives"
                               : fmt::format("collectives can run in the network of {}", namesOf(net.all, both)));
  return lines;
}

}  // namespace tutti::comm
