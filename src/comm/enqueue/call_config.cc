#include "comm/enqueue/call_config.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/log.h"
#include "comm/state/communicator.h"
#include "comm/tuning/selection.h"

namespace tutti::comm {

namespace {

constexpr int kUndefined = NCCL_CONFIG_UNDEF_INT;
constexpr unsigned kMagic = NCCL_API_MAGIC;
constexpr int kUnbounded = 0x7fffffff;
/// The first layout ended there.
constexpr std::size_t kLeastSize = offsetof(ncclCollConfig_t, userProfilerTag) + sizeof(std::uint64_t);

struct IntField {
  const char* name;
  int ncclCollConfig_t::*member;
  int lowest;
  int highest;
  const char* without;  ///< why it has no effect; null: it has one
};

constexpr std::array<IntField, 6> kIntFields{{
    {"minCTAs", &ncclCollConfig_t::minCTAs, 1, kUnbounded, nullptr},
    {"maxCTAs", &ncclCollConfig_t::maxCTAs, 1, kUnbounded, nullptr},
    {"nvlsCTAs", &ncclCollConfig_t::nvlsCTAs, 1, kUnbounded, "there are no NVLink SHARP kernels yet"},
    {"cgaClusterSize", &ncclCollConfig_t::cgaClusterSize, 0, 8, "kernels run without clusters"},
    {"forceAlgSelection", &ncclCollConfig_t::forceAlgSelection, 0, 1, nullptr},
    {"CTAPolicy", &ncclCollConfig_t::CTAPolicy, 0, 3, "there is one policy yet"},
}};

/// Said once in a process for each of `number` 0..15: options come with every call.
void sayWithoutEffect(unsigned number, std::string_view name, std::string_view why) {
  static std::atomic<unsigned> said{0};
  const unsigned bit = 1U << number;
  if ((said.fetch_or(bit) & bit) == 0) info(kEnv, "Collective config {} has no effect: {}", name, why);
}

Result<ncclCollConfig_t> adopt(const ncclCollConfig_t& user, std::string_view label) {
  ncclCollConfig_t adopted = NCCL_COLLCONFIG_INITIALIZER;
  if (user.magic != kMagic || user.size < kLeastSize) {
    return fail(
        ncclInvalidArgument,
        "{} : config was not initialised with NCCL_COLLCONFIG_INITIALIZER (magic {:#x}, expected {:#x}; size {}, "
        "at least {})",
        label, user.magic, kMagic, user.size, kLeastSize);
  }
  std::memcpy(&adopted, &user, std::min(user.size, sizeof(adopted)));
  return adopted;
}

Status checkInts(const ncclCollConfig_t& config, std::string_view label) {
  for (std::size_t i = 0; i < kIntFields.size(); ++i) {
    const IntField& field = kIntFields[i];
    const int value = config.*field.member;
    if (value == kUndefined) continue;
    if (value < field.lowest || value > field.highest) {
      return fail(ncclInvalidArgument, "{} : invalid {} {} (allowed: {}..{})", label, field.name, value, field.lowest,
                  field.highest == kUnbounded ? "" : std::to_string(field.highest));
    }
    if (field.without != nullptr) sayWithoutEffect(static_cast<unsigned>(i), field.name, field.without);
  }
  return {};
}

Status checkBounds(const ncclComm& comm, int least, int most, std::string_view label) {
  const int ofComm = comm.config.values.maxCTAs;
  if (most != kUndefined && most > ofComm) {
    return fail(ncclInvalidArgument, "{} : maxCTAs {} is more than the communicator's maxCTAs {}", label, most, ofComm);
  }
  if (least == kUndefined || least <= (most == kUndefined ? ofComm : most)) return {};
  return fail(ncclInvalidArgument, "{} : minCTAs {} is more than maxCTAs {}{}", label, least,
              most == kUndefined ? ofComm : most, most == kUndefined ? " of the communicator" : "");
}

std::uint8_t channelsOf(int value) {
  return value == kUndefined ? 0 : static_cast<std::uint8_t>(std::min(value, 255));
}

}  // namespace

Status applyCallConfig(const ncclComm& comm, const ncclCollConfig_t& config, std::string_view label, Op& op) {
  ASSIGN(const ncclCollConfig_t values, adopt(config, label));
  TRY(checkInts(values, label));
  TRY(checkBounds(comm, values.minCTAs, values.maxCTAs, label));
  ASSIGN(Selection selection, parseSelection(values.algSelection != nullptr ? values.algSelection : ""));
  selection.forced = values.forceAlgSelection != 0;
  op.tag = values.userProfilerTag;
  op.launchEvent = values.launchCompletionEvent;
  constexpr unsigned kOfMessages = 8;
  if (!isMessageFunc(op.func)) {
    op.options = {selection, channelsOf(values.minCTAs), channelsOf(values.maxCTAs)};
    return {};
  }
  if (selection.given() && selection.forced) {
    return fail(ncclInvalidArgument,
                "{} : algSelection \"{}\" is not possible: {} is made of messages, which know no algorithm. Leave it "
                "out, or set forceAlgSelection to 0",
                label, values.algSelection, apiFuncName(op.func));
  }
  if (values.minCTAs != kUndefined || values.maxCTAs != kUndefined) {
    sayWithoutEffect(kOfMessages, "minCTAs and maxCTAs", "of operations that are made of messages, peers choose alike");
  }
  return {};
}

}  // namespace tutti::comm
