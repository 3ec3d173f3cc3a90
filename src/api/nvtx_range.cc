#include "api/nvtx_range.h"

#ifdef TUTTI_HAVE_NVTX
#include <nvtx3/nvToolsExtPayload.h>

#include <array>
#include <cstddef>
#include <iterator>

#include "base/settings/params.h"
#include "comm/plan/op.h"
#endif

namespace tutti::api {

NvtxCall nvtxCall(const comm::Op& op, std::uint64_t commId) {
  using comm::ApiFunc;
  NvtxCall call{.commId = commId,
                .bytes = op.count * comm::datatypeBytes(op.datatype),
                .count = op.count,
                .datatype = static_cast<std::int32_t>(op.datatype)};
  if (comm::isReducing(op.func)) call.redOp = static_cast<std::int32_t>(op.redOp);
  switch (op.func) {
    case ApiFunc::Reduce:
    case ApiFunc::Broadcast:
    case ApiFunc::Gather:
    case ApiFunc::Scatter:
    case ApiFunc::Send:
    case ApiFunc::Recv:
      call.root = op.root;
      break;
    default:
      break;
  }
  return call;
}

#ifdef TUTTI_HAVE_NVTX

namespace {

/// Users of a tool choose their own; these are far from those that other libraries take by default (1, 2, …).
constexpr std::uint64_t kCallSchema = NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + 7001;
constexpr std::uint64_t kTypeEnum = kCallSchema + 1;
constexpr std::uint64_t kOpEnum = kCallSchema + 2;

nvtxPayloadSchemaEntry_t entry(std::uint64_t type, const char* name, std::size_t offset) {
  nvtxPayloadSchemaEntry_t made{};
  made.type = type;
  made.name = name;
  made.offset = offset;
  return made;
}

template <std::size_t N>
void registerEnum(nvtxDomainHandle_t domain, std::uint64_t id, const char* name,
                  const std::array<nvtxPayloadEnum_t, N>& entries) {
  nvtxPayloadEnumAttr_t attributes{};
  attributes.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE |
                         NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  attributes.name = name;
  attributes.entries = entries.data();
  attributes.numEntries = N;
  attributes.sizeOfEnum = sizeof(std::int32_t);
  attributes.schemaId = id;
  nvtxPayloadEnumRegister(domain, &attributes);
}

void registerCall(nvtxDomainHandle_t domain) {
  static const std::array<nvtxPayloadEnum_t, 12> kTypes{{{"ncclInt8", ncclInt8, 0},
                                                         {"ncclUint8", ncclUint8, 0},
                                                         {"ncclInt32", ncclInt32, 0},
                                                         {"ncclUint32", ncclUint32, 0},
                                                         {"ncclInt64", ncclInt64, 0},
                                                         {"ncclUint64", ncclUint64, 0},
                                                         {"ncclFloat16", ncclFloat16, 0},
                                                         {"ncclFloat32", ncclFloat32, 0},
                                                         {"ncclFloat64", ncclFloat64, 0},
                                                         {"ncclBfloat16", ncclBfloat16, 0},
                                                         {"ncclFloat8e4m3", ncclFloat8e4m3, 0},
                                                         {"ncclFloat8e5m2", ncclFloat8e5m2, 0}}};
  static const std::array<nvtxPayloadEnum_t, 5> kOps{
      {{"Sum", ncclSum, 0}, {"Product", ncclProd, 0}, {"Max", ncclMax, 0}, {"Min", ncclMin, 0}, {"Avg", ncclAvg, 0}}};
  registerEnum(domain, kTypeEnum, "ncclDataType_t", kTypes);
  registerEnum(domain, kOpEnum, "ncclRedOp_t", kOps);
  static const nvtxPayloadSchemaEntry_t kEntries[] = {
      entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", offsetof(NvtxCall, commId)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "Message size [bytes]", offsetof(NvtxCall, bytes)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "Count", offsetof(NvtxCall, count)),
      entry(kTypeEnum, "Data type", offsetof(NvtxCall, datatype)),
      entry(kOpEnum, "Reduction operation", offsetof(NvtxCall, redOp)),
      entry(NVTX_PAYLOAD_ENTRY_TYPE_INT32, "Root or peer", offsetof(NvtxCall, root)),
  };
  nvtxPayloadSchemaAttr_t attributes{};
  attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  attributes.name = "NCCL call";
  attributes.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  attributes.entries = kEntries;
  attributes.numEntries = std::size(kEntries);
  attributes.payloadStaticSize = sizeof(NvtxCall);
  attributes.schemaId = kCallSchema;
  nvtxPayloadSchemaRegister(domain, &attributes);
}

/// Null: nobody listens, or nobody shall.
nvtxDomainHandle_t openDomain() {
  nvtxDomainHandle_t const domain = nvtxDomainCreateA("NCCL");
  if (domain == nullptr) return nullptr;
  if (Params::process().misc.nvtxDisable) {
    nvtxDomainDestroy(domain);
    return nullptr;
  }
  registerCall(domain);
  return domain;
}

nvtxDomainHandle_t ncclDomain() {
  static nvtxDomainHandle_t const kDomain = openDomain();
  return kDomain;
}

}  // namespace

bool nvtxIsOn() {
  return ncclDomain() != nullptr;
}

void NvtxRange::push(std::string_view function, const NvtxCall* call) {
  nvtxEventAttributes_t event{};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = function.data();
  nvtxPayloadData_t data{};
  if (call != nullptr) NVTX_PAYLOAD_EVTATTR_SET_DATA(event, &data, kCallSchema, call, sizeof(*call));
  nvtxDomainRangePushEx(ncclDomain(), &event);
}

void NvtxRange::pop() {
  nvtxDomainRangePop(ncclDomain());
}

#else

bool nvtxIsOn() {
  return false;
}

void NvtxRange::push(std::string_view, const NvtxCall*) {}
void NvtxRange::pop() {}

#endif

}  // namespace tutti::api
