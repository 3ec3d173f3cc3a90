#include "transport/net/tcp/ack_monitor.h"

// Not <netinet/tcp.h>, whose tcp_info is the one of long ago.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

namespace tutti::net::tcp {

std::optional<AckSample> sampleAcks(int fd) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  if (length < offsetof(tcp_info, tcpi_snd_wnd) + sizeof(info.tcpi_snd_wnd)) return std::nullopt;
  return AckSample{.acked = info.tcpi_bytes_acked,
                   .unacked = info.tcpi_unacked,
                   .window = info.tcpi_snd_wnd,
                   .heard = info.tcpi_segs_in,
                   .attempts = info.tcpi_retransmits,
                   .longest = info.tcpi_snd_mss,
                   .unsent = info.tcpi_notsent_bytes};
}

TcpAckMonitor::Verdict TcpAckMonitor::judge(const AckSample& sample, SteadyClock::time_point now,
                                            milliseconds patience) {
  const bool waits = sample.unacked > 0 && sample.window > 0;
  if (!waits || !waits_ || sample.acked != acked_) {
    waits_ = waits;
    acked_ = sample.acked;
    heard_ = sample.heard;
    since_ = heardAt_ = now;
    return waits ? Verdict::UnderWay : Verdict::Delivered;
  }
  if (sample.heard != heard_) heardAt_ = now;
  heard_ = sample.heard;
  // Sent again twice: it is not that this host has not got to it.
  constexpr std::uint32_t kAttempts = 2;
  if (now - since_ < patience || sample.attempts < kAttempts) return Verdict::UnderWay;
  // What was on its way when the trouble began does not count.
  return heardAt_ - since_ > patience / 4 ? Verdict::Swallowed : Verdict::Silent;
}

}  // namespace tutti::net::tcp
