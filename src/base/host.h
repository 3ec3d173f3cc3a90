// Who we are: host name, host identity, process identity.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

/// The host's name as log lines show it: gethostname cut at the first '.', with '%' and '/' replaced by '-'.
std::string hostName();

/// The same cutting for any name.
std::string shortHostName(std::string_view fullName);

/// Equal in all processes of one host: hash of host name and boot id, or of `hostId` (NCCL_HOSTID) where not empty.
std::uint64_t hostHash(std::string_view hostId = {});

/// Equal in all threads of one process, different between processes of one host, containers included (pid and pid
/// namespace).
std::uint64_t processHash();

/// Equal in processes of one host that can meet at sockets with abstract names (network namespace); 0 where the system
/// does not tell.
std::uint64_t networkNamespace();

}  // namespace tutti
