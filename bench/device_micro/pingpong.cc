// Item pingpong: how long a message takes from one block to another, by the protocols that ship.
#include <array>
#include <cstddef>
#include <cstdio>

#include "bench/device_micro/bench.h"
#include "bench/device_micro/params.h"
#include "device/policy.h"

namespace micro {

namespace {

using tutti::device::Counter;
using tutti::device::kCountersBytes;
using tutti::device::kGpuPolicy;
using tutti::device::kProtocols;
using tutti::device::kSteps;
using tutti::device::Protocol;
using tutti::device::RecvConn;
using tutti::device::SendConn;

constexpr const char* kNames[] = {"LL", "LL128", "Simple"};

/// Two blocks of one GPU, joined as the library joins two ranks: for each direction slots, and counters.
class Pair {
 public:
  /// `countersInHost`: tail and head lie in host memory, as over a network.
  explicit Pair(bool countersInHost)
      : slots_(Memory::Place::Device, 2 * kDirectionBytes),
        counters_(countersInHost ? Memory::Place::Host : Memory::Place::Device, 4 * kCountersBytes),
        steps_(Memory::Place::Device, 4 * kCountersBytes),
        sends_(Memory::Place::Device, 2 * sizeof(SendConn)),
        recvs_(Memory::Place::Device, 2 * sizeof(RecvConn)) {
    std::vector<SendConn> sends(2, SendConn{});
    std::vector<RecvConn> recvs(2, RecvConn{});
    for (unsigned from : {0u, 1u}) {
      fill(sends[from], from, 2 * from);
      fill(recvs[1 - from], from, 2 * from + 1);
    }
    sends_.write(sends);
    recvs_.write(recvs);
  }
  /// As new: the counters begin again, and no line has a flag.
  void clear() {
    slots_.clear();
    counters_.clear();
    steps_.clear();
  }
  const SendConn* sends() const { return sends_.get<SendConn>(); }
  const RecvConn* recvs() const { return recvs_.get<RecvConn>(); }

 private:
  static constexpr std::size_t kDirectionBytes =
      kSteps * (kGpuPolicy.slotBytes[0] + std::size_t{kGpuPolicy.slotBytes[1]} + kGpuPolicy.slotBytes[2]);

  /// One end of the direction from block `from`. `end`: of four.
  void fill(tutti::device::ConnFifos& fifos, unsigned from, unsigned end) const {
    std::size_t at = from * kDirectionBytes;
    for (int p = 0; p < kProtocols; ++p) {
      fifos.slots[p] = slots_.get<std::byte>(at);
      fifos.slotBytes[p] = kGpuPolicy.slotBytes[p];
      at += std::size_t{kSteps} * kGpuPolicy.slotBytes[p];
    }
    fifos.tail = counters_.get<Counter>(2 * from * kCountersBytes);
    fifos.head = counters_.get<Counter>((2 * from + 1) * kCountersBytes);
    fifos.step = steps_.get<Counter>(end * kCountersBytes);
  }

  Memory slots_;
  Memory counters_;
  Memory steps_;
  Memory sends_;
  Memory recvs_;
};

class PingPong {
 public:
  explicit PingPong(Bench& bench)
      : bench_(bench),
        buffers_(Memory::Place::Device, 3 * kBufferBytes),
        times_(Memory::Place::Device, sizeof(BlockTime)),
        done_(Memory::Place::Device, 256),
        abort_(Memory::Place::Host, 4096) {}

  /// Nanoseconds from block to block.
  double measure(Pair& pair, Protocol protocol, std::size_t bytes, unsigned threads) {
    PingParams params{};
    params.send = pair.sends();
    params.recv = pair.recvs();
    params.sent = buffers_.get<float>();
    params.passed = buffers_.get<float>(kBufferBytes);
    params.received = buffers_.get<float>(2 * kBufferBytes);
    params.elements = bytes / sizeof(float);
    params.warm = 4;
    params.rounds = bench_.quick() ? 4 : bytes > 16 << 10 ? 100 : 300;
    params.abortWord = abort_.get<std::uint32_t>();
    params.done = done_.get<std::uint32_t>();
    params.limit = bench_.spinLimit();
    params.times = times_.get<BlockTime>();
    return medianOf(bench_.repeats(), [&] { return once(pair, protocol, params, threads); });
  }

  /// Nanoseconds from thread to thread of a bare word.
  double flag(bool inHost, bool ordered) {
    Memory words(inHost ? Memory::Place::Host : Memory::Place::Device, 4096);
    const FlagParams params{words.get<std::uint64_t>(),   words.get<std::uint64_t>(2048),
                            bench_.quick() ? 10u : 1000u, ordered ? 1u : 0u,
                            bench_.spinLimit(),           times_.get<BlockTime>()};
    return medianOf(bench_.repeats(), [&] {
      words.clear();
      bench_.gpu.run("ping_flag", {2, 32}, params);
      const BlockTime time = times_.read<BlockTime>(1)[0];
      if (time.extra != 0) bench_.report.failure("a bare word did not come back within the limit");
      return static_cast<double>(time.end - time.begin) / (2.0 * params.rounds);
    });
  }

 private:
  static constexpr std::size_t kBufferBytes = 1 << 20;

  double once(Pair& pair, Protocol protocol, const PingParams& params, unsigned threads) {
    const char* name = kNames[static_cast<int>(protocol)];
    pair.clear();
    done_.clear();
    abort_.clear();
    buffers_.clear();
    std::vector<float> pattern(params.elements);
    for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<float>(i % 8191 + 1);
    buffers_.write(pattern);
    bench_.gpu.run(std::string("ping_") + name, {3, threads}, params);
    if (*abort_.host<std::uint32_t>() != 0) {
      bench_.report.failure(std::string(name) + ": a message of " + std::to_string(params.elements * sizeof(float)) +
                            " bytes did not come back within the limit");
      return 0;
    }
    if (buffers_.read<float>(params.elements, 2 * kBufferBytes) != pattern)
      bench_.report.failure(std::string(name) + ": a message came back wrong");
    const BlockTime time = times_.read<BlockTime>(1)[0];
    return static_cast<double>(time.end - time.begin) / (2.0 * params.rounds);
  }

  Bench& bench_;
  Memory buffers_;
  Memory times_;
  Memory done_;
  Memory abort_;
};

/// As many threads as the message gives something to do (device/policy.h).
unsigned fewThreads(Protocol protocol, std::size_t bytes) {
  const auto p = static_cast<std::size_t>(protocol);
  const std::size_t least = protocol == Protocol::Simple ? 64 : 32;
  const std::size_t wanted = (bytes / kGpuPolicy.bytesPerThread[p] + 31) / 32 * 32;
  return static_cast<unsigned>(std::clamp<std::size_t>(wanted, least, kGpuPolicy.collThreads[p]));
}

const std::vector<std::size_t> kSizes{8, 1 << 10, 16 << 10, 64 << 10};

void row(Bench& bench, PingPong& game, Pair& pair, Protocol protocol, bool few, bool host) {
  const char* name = kNames[static_cast<int>(protocol)];
  const unsigned most = bench.quick() ? 64 : kGpuPolicy.collThreads[static_cast<std::size_t>(protocol)];
  std::string text;
  for (std::size_t bytes : bench.quick() ? std::vector<std::size_t>{8, 1 << 10} : kSizes) {
    if (bench.outOfTime(name)) return;
    const unsigned threads = few ? fewThreads(protocol, bytes) : most;
    const double ns = game.measure(pair, protocol, bytes, threads);
    bench.report.result({{"protocol", name},
                         {"bytes", bytes},
                         {"threads", threads},
                         {"counters", host ? "host" : "device"},
                         {"one_way_ns", ns}});
    char cell[32];
    std::snprintf(cell, sizeof(cell), "%10.0f", ns);
    text += cell;
  }
  const std::string how = few ? "as many threads as pay" : std::to_string(most) + " threads";
  bench.report.line("  %-7s %-34s%s", name, (host ? how + ", counters in host memory" : how).c_str(), text.c_str());
}

}  // namespace

void runPingPong(Bench& bench) {
  PingPong game(bench);
  Pair pair(false);
  Pair overHost(true);
  bench.report.line(
      "pingpong: nanoseconds one way, send() in one block to the end of recv() in another, by the shipped");
  bench.report.line("  primitives; by bytes of the message:            %s",
                    bench.quick() ? "8      1024" : "8      1024     16384     65536");
  for (Protocol protocol : {Protocol::LL, Protocol::LL128, Protocol::Simple}) {
    row(bench, game, pair, protocol, false, false);
    if (!bench.quick()) row(bench, game, pair, protocol, true, false);
  }
  row(bench, game, overHost, Protocol::Simple, false, true);
  for (const bool host : {false, true}) {
    for (const bool ordered : {false, true}) {
      if (bench.outOfTime("bare word")) return;
      const double ns = game.flag(host, ordered);
      const char* order = ordered ? "release, acquire" : "relaxed";
      bench.report.result(
          {{"protocol", "word"}, {"order", order}, {"counters", host ? "host" : "device"}, {"one_way_ns", ns}});
      bench.report.line("  a bare word in %-6s memory, st and ld %-17s%10.0f", host ? "host" : "device", order, ns);
    }
  }
}

}  // namespace micro
