// The thread that hears what a NIC says on its own.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/threads/thread.h"
#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {

class NicHealth;

/// Tells people, and keeps what connections have to know, until its end.
class NicEvents {
 public:
  /// `verbs` and `context` must outlive what is made. Null where there can be none: `*why` says why.
  static std::unique_ptr<NicEvents> hear(const Verbs& verbs, ibv_context* context, std::string name, std::string* why);
  ~NicEvents();
  NicEvents(const NicEvents&) = delete;
  NicEvents& operator=(const NicEvents&) = delete;

  NicHealth& health() { return *health_; }

 private:
  NicEvents(const Verbs& verbs, ibv_context* context, std::string name);
  bool start(std::string* why);
  void listen();
  void take(const ibv_async_event& event);
  void takePortEvent(const ibv_async_event& event, const char* text);
  void takeFatalEvent(const ibv_async_event& event, const char* text);
  void takeQueuePairEvent(const ibv_async_event& event, const char* text);

  const Verbs& verbs_;
  ibv_context* context_;
  std::string name_;
  std::unique_ptr<NicHealth> health_;
  Fd stop_;  ///< an eventfd
  Thread thread_;
};

}  // namespace tutti::net::ib
