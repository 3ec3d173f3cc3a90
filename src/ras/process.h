// This process's part in reporting on the job: one service for all of its communicators.
#pragma once

#include <optional>
#include <vector>

#include "bootstrap/link/crypto.h"
#include "ras/network/members.h"
#include "ras/report/survey.h"

namespace tutti::ras {

struct ProcessSettings;

/// Starts the service where it is enabled; again, it does nothing. `hostHash`: equal on processes of one host. What
/// fails is told by INFO lines, and harms nobody. Any thread.
void startProcess(const ProcessSettings& settings, const LibraryFacts& library, std::uint64_t hostHash);

/// How others reach this process. Trivially copyable: travels with what ranks of a communicator tell each other.
struct Contact {
  Address address;       ///< unset: this process takes no part
  bootstrap::Key key{};  ///< masked: only ranks of the communicator can read it
};

/// This process's contact for rank `rank` of the communicator with that key. Any thread.
Contact offerContact(const bootstrap::Key& commKey, int rank);
/// What another rank of it has offered; unset where that takes no part. Its devices are for the caller to fill in.
std::optional<Member> readContact(const Contact& contact, const bootstrap::Key& commKey, int rank);

/// Processes that this one has met, itself among them. Any thread; does not wait.
void meet(std::vector<Member> members);

}  // namespace tutti::ras
