// Reading settings by name from outside: the values that the library works with.
#include <cstring>
#include <string>
#include <vector>

#include "api/boundary.h"
#include "base/never_destroyed.h"
#include "base/settings/params.h"
#include "base/standard_output.h"
#include "comm/library.h"
#include "comm/settings/current_settings.h"

using namespace tutti;

/// A visible setting: what ncclParamHandle_t points at.
struct ncclParamHandle {
  std::size_t index = 0;  ///< in visibleSettings()
  const char* name = nullptr;
  bool integer = false;
};

namespace {

const std::vector<ncclParamHandle>& allHandles() {
  static NeverDestroyed<std::vector<ncclParamHandle>> handles([] {
    std::vector<ncclParamHandle> made;
    for (const VisibleSetting& setting : visibleSettings(Params())) {
      made.push_back({made.size(), setting.name, setting.integer});
    }
    return made;
  }());
  return handles.get();
}

/// As a communicator made now would read them.
Result<Params> valuesNow() {
  TRY(comm::startLibraryWithoutCuda());
  return comm::currentSettings();
}

Result<std::string> textOf(const ncclParamHandle& param) {
  ASSIGN(const Params params, valuesNow());
  return visibleSettings(params)[param.index].value;
}

std::int64_t numberFrom(const std::string& text) {
  return parseInteger(text).value.value_or(0);
}

Result<const ncclParamHandle*> find(std::string_view label, const char* key) {
  TRY(api::checkPointer(key, label, "key"));
  for (const ncclParamHandle& param : allHandles()) {
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
              param.integer ? "a signed 64-bit integer" : "text");
}

/// All visible integers are signed and 64 bits wide: the other widths are always refused.
ncclResult_t refuse(std::string_view label, ncclParamHandle_t handle, const void* out) {
  return api::ask(label, [&]() -> Status {
    TRY(api::checkPointer(handle, label, "handle"));
    TRY(api::checkPointer(out, label, "out"));
    return wrongType(label, *handle);
  });
}

}  // namespace

TUTTI_API(ncclResult_t, ParamBind, (ncclParamHandle_t * out, const char* key)) {
  return api::ask("ncclParamBind", [&]() -> Status {
    TRY(api::checkPointer(out, "ParamBind", "out"));
    ASSIGN(const ncclParamHandle* param, find("ParamBind", key));
    *out = const_cast<ncclParamHandle*>(param);  // the C type is not const; nobody writes through it
    return {};
  });
}

// Every setting is a signed 64-bit number or a text: these always refuse.
#define GET_OF_NO_SETTING(name, type)                                     \
  TUTTI_API(ncclResult_t, name, (ncclParamHandle_t handle, type * out)) { \
    return refuse(#name, handle, out);                                    \
  }
GET_OF_NO_SETTING(ParamGetI8, int8_t)
GET_OF_NO_SETTING(ParamGetI16, int16_t)
GET_OF_NO_SETTING(ParamGetI32, int32_t)
GET_OF_NO_SETTING(ParamGetU8, uint8_t)
GET_OF_NO_SETTING(ParamGetU16, uint16_t)
GET_OF_NO_SETTING(ParamGetU32, uint32_t)
GET_OF_NO_SETTING(ParamGetU64, uint64_t)
#undef GET_OF_NO_SETTING

TUTTI_API(ncclResult_t, ParamGetI64, (ncclParamHandle_t handle, int64_t* out)) {
  return api::ask("ncclParamGetI64", [&]() -> Status {
    TRY(api::checkPointer(handle, "ParamGetI64", "handle"));
    TRY(api::checkPointer(out, "ParamGetI64", "out"));
    if (!handle->integer) return wrongType("ParamGetI64", *handle);
    ASSIGN(const std::string text, textOf(*handle));
    *out = numberFrom(text);
    return {};
  });
}

TUTTI_API(ncclResult_t, ParamGetStr, (ncclParamHandle_t handle, const char** out)) {
  return api::ask("ncclParamGetStr", [&]() -> Status {
    TRY(api::checkPointer(handle, "ParamGetStr", "handle"));
    TRY(api::checkPointer(out, "ParamGetStr", "out"));
    if (handle->integer) return wrongType("ParamGetStr", *handle);
    ASSIGN(std::string text, textOf(*handle));
    *out = keep(std::move(text)).c_str();
    return {};
  });
}

TUTTI_API(ncclResult_t, ParamGet, (ncclParamHandle_t handle, void* out, int maxLen, int* len)) {
  return api::ask("ncclParamGet", [&]() -> Status {
    TRY(api::checkPointer(handle, "ParamGet", "handle"));
    TRY(api::checkPointer(out, "ParamGet", "out"));
    TRY(api::checkPointer(len, "ParamGet", "len"));
    const bool integer = handle->integer;
    ASSIGN(const std::string text, textOf(*handle));
    const std::int64_t number = integer ? numberFrom(text) : 0;
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
  return api::ask("ncclParamGetParameter", [&]() -> Status {
    TRY(api::checkPointer(value, "ParamGetParameter", "value"));
    TRY(api::checkPointer(valueLen, "ParamGetParameter", "valueLen"));
    ASSIGN(const ncclParamHandle* param, find("ParamGetParameter", key));
    ASSIGN(std::string now, textOf(*param));
    const std::string& text = keep(std::move(now));
    *value = text.c_str();
    *valueLen = static_cast<int>(text.size());
    return {};
  });
}

TUTTI_API(ncclResult_t, ParamGetAllParameterKeys, (const char*** table, int* tableLen)) {
  return api::ask("ncclParamGetAllParameterKeys", [&]() -> Status {
    TRY(api::checkPointer(table, "ParamGetAllParameterKeys", "table"));
    TRY(api::checkPointer(tableLen, "ParamGetAllParameterKeys", "tableLen"));
    static NeverDestroyed<std::vector<const char*>> names([] {
      std::vector<const char*> all;
      for (const ncclParamHandle& param : allHandles()) all.push_back(param.name);
      return all;
    }());
    *table = names.get().data();
    *tableLen = static_cast<int>(names.get().size());
    return {};
  });
}

TUTTI_API(void, ParamDumpAll, (void)) {
  (void)api::ask("ncclParamDumpAll", []() -> Status {
    ASSIGN(const Params params, valuesNow());
    writeToStdout(visibleSettingsDump(params));
    return {};
  });
}
