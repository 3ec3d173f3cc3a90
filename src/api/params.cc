// Reading settings by name from outside.
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>

#include "api/boundary.h"
#include "base/environment.h"

using namespace tutti;

/// A visible setting: what ncclParamHandle_t points at.
struct ncclParamHandle {
  enum class Kind : std::uint8_t { Integer, Text };
  const char* name;
  Kind kind;
  const char* fallback;
};

namespace {

using Kind = ncclParamHandle::Kind;

constexpr std::array kVisible{
    ncclParamHandle{"NCCL_DEBUG", Kind::Text, ""},
    ncclParamHandle{"NCCL_DEBUG_SUBSYS", Kind::Text, ""},
    ncclParamHandle{"NCCL_DEBUG_FILE", Kind::Text, ""},
    ncclParamHandle{"NCCL_DEBUG_TIMESTAMP_FORMAT", Kind::Text, "[%F %T] "},
    ncclParamHandle{"NCCL_DEBUG_TIMESTAMP_LEVELS", Kind::Text, "WARN"},
    ncclParamHandle{"NCCL_WARN_ENABLE_DEBUG_INFO", Kind::Integer, "0"},
    ncclParamHandle{"NCCL_SET_THREAD_NAME", Kind::Integer, "0"},
    ncclParamHandle{"NCCL_PARAM_DUMP_ALL", Kind::Integer, "0"},
    ncclParamHandle{"NCCL_NO_CACHE", Kind::Text, ""},
};

std::string textOf(const ncclParamHandle& param) {
  return processEnvironment().get(param.name).value_or(param.fallback);
}

/// What does not read as a number counts as the default, as everywhere in the library.
std::int64_t numberOf(const ncclParamHandle& param) {
  std::int64_t value = 0;
  for (const std::string& text : {textOf(param), std::string(param.fallback)}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end != text.data()) return value;
  }
  return value;
}

Result<const ncclParamHandle*> find(std::string_view label, const char* key) {
  TRY(checkPointer(key, label, "key"));
  for (const ncclParamHandle& param : kVisible) {
    if (std::strcmp(param.name, key) == 0) return &param;
  }
  return fail(ncclInvalidArgument, "{} : there is no setting named {}", label, key);
}

/// The text handed out last on this thread.
const std::string& keep(std::string text) {
  thread_local std::string kept;
  kept = std::move(text);
  return kept;
}

Status wrongType(std::string_view label, const ncclParamHandle& param) {
  return fail(ncclInvalidArgument, "{} : {} is {}", label, param.name,
              param.kind == Kind::Integer ? "a signed 64-bit integer" : "text");
}

/// All visible integers are signed and 64 bits wide: the other widths are always refused.
ncclResult_t refuse(std::string_view label, ncclParamHandle_t handle, const void* out) {
  return api(label, [&]() -> Status {
    TRY(checkPointer(handle, label, "handle"));
    TRY(checkPointer(out, label, "out"));
    return wrongType(label, *handle);
  });
}

}  // namespace

TUTTI_API(ncclResult_t, ParamBind, (ncclParamHandle_t * out, const char* key)) {
  return api("ncclParamBind", [&]() -> Status {
    TRY(checkPointer(out, "ParamBind", "out"));
    ASSIGN(const ncclParamHandle* param, find("ParamBind", key));
    *out = const_cast<ncclParamHandle*>(param);  // the C type is not const; nobody writes through it
    return {};
  });
}

TUTTI_API(ncclResult_t, ParamGetI8, (ncclParamHandle_t h, int8_t* out)) { return refuse("ParamGetI8", h, out); }
TUTTI_API(ncclResult_t, ParamGetI16, (ncclParamHandle_t h, int16_t* out)) { return refuse("ParamGetI16", h, out); }
TUTTI_API(ncclResult_t, ParamGetI32, (ncclParamHandle_t h, int32_t* out)) { return refuse("ParamGetI32", h, out); }
TUTTI_API(ncclResult_t, ParamGetU8, (ncclParamHandle_t h, uint8_t* out)) { return refuse("ParamGetU8", h, out); }
TUTTI_API(ncclResult_t, ParamGetU16, (ncclParamHandle_t h, uint16_t* out)) { return refuse("ParamGetU16", h, out); }
TUTTI_API(ncclResult_t, ParamGetU32, (ncclParamHandle_t h, uint32_t* out)) { return refuse("ParamGetU32", h, out); }
TUTTI_API(ncclResult_t, ParamGetU64, (ncclParamHandle_t h, uint64_t* out)) { return refuse("ParamGetU64", h, out); }

TUTTI_API(ncclResult_t, ParamGetI64, (ncclParamHandle_t handle, int64_t* out)) {
  return api("ncclParamGetI64", [&]() -> Status {
    TRY(checkPointer(handle, "ParamGetI64", "handle"));
    TRY(checkPointer(out, "ParamGetI64", "out"));
    if (handle->kind != Kind::Integer) return wrongType("ParamGetI64", *handle);
    *out = numberOf(*handle);
    return {};
  });
}

TUTTI_API(ncclResult_t, ParamGetStr, (ncclParamHandle_t handle, const char** out)) {
  return api("ncclParamGetStr", [&]() -> Status {
    TRY(checkPointer(handle, "ParamGetStr", "handle"));
    TRY(checkPointer(out, "ParamGetStr", "out"));
    if (handle->kind != Kind::Text) return wrongType("ParamGetStr", *handle);
    *out = keep(textOf(*handle)).c_str();
    return {};
  });
}

TUTTI_API(ncclResult_t, ParamGet, (ncclParamHandle_t handle, void* out, int maxLen, int* len)) {
  return api("ncclParamGet", [&]() -> Status {
    TRY(checkPointer(handle, "ParamGet", "handle"));
    TRY(checkPointer(out, "ParamGet", "out"));
    TRY(checkPointer(len, "ParamGet", "len"));
    const std::int64_t number = handle->kind == Kind::Integer ? numberOf(*handle) : 0;
    const std::string text = textOf(*handle);
    const bool integer = handle->kind == Kind::Integer;
    const void* bytes = integer ? static_cast<const void*>(&number) : text.c_str();
    const int size = integer ? static_cast<int>(sizeof(number)) : static_cast<int>(text.size() + 1);
    if (maxLen < size) {
      return fail(ncclInvalidArgument, "ParamGet : {} takes {} bytes, the buffer has {}", handle->name, size, maxLen);
    }
    std::memcpy(out, bytes, static_cast<std::size_t>(size));
    *len = size;
    return {};
  });
}

TUTTI_API(ncclResult_t, ParamGetParameter, (const char* key, const char** value, int* valueLen)) {
  return api("ncclParamGetParameter", [&]() -> Status {
    TRY(checkPointer(value, "ParamGetParameter", "value"));
    TRY(checkPointer(valueLen, "ParamGetParameter", "valueLen"));
    ASSIGN(const ncclParamHandle* param, find("ParamGetParameter", key));
    const std::string& text = keep(param->kind == Kind::Integer ? std::to_string(numberOf(*param)) : textOf(*param));
    *value = text.c_str();
    *valueLen = static_cast<int>(text.size());
    return {};
  });
}

TUTTI_API(ncclResult_t, ParamGetAllParameterKeys, (const char*** table, int* tableLen)) {
  return api("ncclParamGetAllParameterKeys", [&]() -> Status {
    TRY(checkPointer(table, "ParamGetAllParameterKeys", "table"));
    TRY(checkPointer(tableLen, "ParamGetAllParameterKeys", "tableLen"));
    static const char* names[kVisible.size()];
    for (std::size_t i = 0; i < kVisible.size(); ++i) names[i] = kVisible[i].name;
    *table = names;
    *tableLen = static_cast<int>(kVisible.size());
    return {};
  });
}

TUTTI_API(void, ParamDumpAll, (void)) {
  (void)api("ncclParamDumpAll", []() -> Status {
    std::string text = "=== ncclParam Registry Dump ===\n";
    for (const ncclParamHandle& param : kVisible) text += std::string(param.name) + "=" + textOf(param) + "\n";
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return {};
  });
}
