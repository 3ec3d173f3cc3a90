// The thread that hears what a NIC says on its own.
#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/threads/thread.h"
#include "transport/net/ib/nic/verbs.h"

namespace tutti::net::ib {

class NicHealth;

/// Tells a NicHealth, and people, until its end.
class NicEvents {
 public:
  /// `verbs`, `context` and `health` must outlive what is made. Null where there can be none: `*why` says why.
  static std::unique_ptr<NicEvents> hear(const Verbs& verbs, ibv_context* context, std::string name, NicHealth& health,
                                         std::string* why);
  ~NicEvents();
  NicEvents(const NicEvents&) = delete;
  NicEvents& operator=(const NicEvents&) = delete;

 private:
  NicEvents(const Verbs& verbs, ibv_context* context, std::string name, NicHealth& health);
  bool start(std::string* why);
  void listen();
  void take(const ibv_async_event& event);
  void takePortEvent(const ibv_async_event& event, const char* text);
  void takeQueuePairEvent(const ibv_async_event& event, const char* text);

  const Verbs& verbs_;
  ibv_context* context_;
  std::string name_;
  NicHealth& health_;
  Fd stop_;  ///< an eventfd
  Thread thread_;
};

}  // namespace tutti::net::ib
