#include "trace/clock_offset.h"

#include <span>

#include "trace/on.h"

namespace tutti::trace {

namespace {

constexpr int kQuestions = 8;
/// Of messages of the control channel, which nobody else uses.
constexpr int kTag = 0x7ac0c10c;

Status sendTime(ControlChannel& channel, int peer, std::uint64_t time) {
  return channel.send(peer, kTag, std::as_bytes(std::span(&time, 1)));
}

Result<std::uint64_t> recvTime(ControlChannel& channel, int peer) {
  std::uint64_t time = 0;
  TRY(channel.recv(peer, kTag, std::as_writable_bytes(std::span(&time, 1))));
  return time;
}

}  // namespace

ClockOffset offsetOf(std::uint64_t asked, std::uint64_t answered, std::uint64_t heard) {
  const std::uint64_t trip = heard - asked;
  return {static_cast<std::int64_t>(answered - (asked + trip / 2)), trip / 2 + 1};
}

Result<ClockOffset> askClock(ControlChannel& channel, int peer) {
  ClockOffset best;
  for (int i = 0; i < kQuestions; ++i) {
    const std::uint64_t asked = now();
    TRY(sendTime(channel, peer, asked));
    ASSIGN(const std::uint64_t answered, recvTime(channel, peer));
    const ClockOffset found = offsetOf(asked, answered, now());
    if (i == 0 || found.error < best.error) best = found;
  }
  return best;
}

Status answerClock(ControlChannel& channel, int peer) {
  for (int i = 0; i < kQuestions; ++i) {
    TRY(recvTime(channel, peer).status());
    TRY(sendTime(channel, peer, now()));
  }
  return {};
}

}  // namespace tutti::trace
