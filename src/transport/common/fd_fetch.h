// Fetches a file descriptor from another process's FdServer, without ever waiting.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "transport/common/fd_wire.h"

namespace tutti::transport {

enum class FetchState : std::uint8_t { Pending, Done, Failed };

/// One fetch. advance() is called again and again until it is not Pending, which is then its answer for ever. One
/// thread at a time.
class FdFetch {
 public:
  FdFetch(const Ticket& ticket, Deadline until) : ticket_(ticket), until_(until) {}
  FetchState advance();
  /// Once, after Done.
  [[nodiscard]] Fd take() { return std::move(fd_); }
  /// After Failed: what happened and what may help, for the end of a message.
  const std::string& why() const { return why_; }

 private:
  FetchState step();
  FetchState knock();
  FetchState receive();
  FetchState again();
  FetchState failed(std::string why);

  Ticket ticket_;
  Deadline until_;
  FetchState state_ = FetchState::Pending;
  Fd line_;
  Fd fd_;
  std::string why_;
};

}  // namespace tutti::transport
