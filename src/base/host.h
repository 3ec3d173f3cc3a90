// Who we are: host name, host identity, process identity.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tutti {

/// The host's name as log lines show it: gethostname cut at the first '.', with '%' and '/' replaced by '-'.
std::string hostName();

/// The same cutting for any name.
std::string shortHostName(std::string_view fullName);

/// What the kernel calls its boot, read from that file; "" where the system has none. ncclSystemError where this
/// process is too short of descriptors or memory to read it.
Result<std::string> bootId(const char* path = "/proc/sys/kernel/random/boot_id");

/// How processes of one host know each other.
struct HostIdentity {
  std::uint64_t hash = 0;      ///< equal in all of them
  bool bootIdUnknown = false;  ///< it is of the host name alone: others of this host, which know their boot, differ
};
/// From host name and boot id, or from `hostId` (NCCL_HOSTID) where that is not empty. What was found once stays.
/// Errors: those of bootId().
Result<HostIdentity> hostIdentity(std::string_view hostId = {});

/// Equal in all threads of one process, different between processes of one host, containers included (pid and pid
/// namespace).
std::uint64_t processHash();

/// Equal in processes of one host that can meet at sockets with abstract names (network namespace); 0 where the system
/// does not tell.
std::uint64_t networkNamespace();

}  // namespace tutti
