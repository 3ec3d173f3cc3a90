// How the library's TCP connections are protected.
#include <cstddef>

#include "api/boundary.h"
#include "comm/library.h"

using namespace tutti;

TUTTI_API(ncclResult_t, SetEncryption, (const ncclEncryptionConfig_t* config)) {
  return api::api("ncclSetEncryption", [&]() -> Status {
    TRY(comm::startLibraryWithoutCuda());
    TRY(api::checkPointer(config, "SetEncryption", "config"));
    constexpr std::size_t kLeastSize = offsetof(ncclEncryptionConfig_t, psk) + sizeof(const char*);
    if (config->magic != NCCL_API_MAGIC || config->size < kLeastSize) {
      return fail(ncclInvalidArgument,
                  "SetEncryption : config was not initialised with NCCL_ENCRYPTION_CONFIG_INITIALIZER (magic {:#x})",
                  config->magic);
    }
    if (config->mode == NCCL_ENCRYPTION_MODE_NONE) return {};
    if (config->mode != NCCL_ENCRYPTION_MODE_PSK) {
      return fail(ncclInvalidArgument, "SetEncryption : invalid mode {} (allowed: 0..1)", config->mode);
    }
    TRY(api::checkPointer(config->psk, "SetEncryption", "psk"));
    return api::notYet("ncclSetEncryption with NCCL_ENCRYPTION_MODE_PSK");
  });
}
