// Item launch: what launches and events cost the calling thread, and when kernels begin.
#include <functional>

#include "bench/device_micro/bench.h"
#include "bench/device_micro/launcher.h"
#include "bench/device_micro/params.h"

namespace micro {

namespace {

using Clock = std::chrono::steady_clock;

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

class Calls {
 public:
  explicit Calls(Bench& bench)
      : bench_(bench), times_(Memory::Place::Device, 1024 * sizeof(BlockTime)), seen_(Memory::Place::Host, 4096) {}

  /// Microseconds of a call: mean of a series, median of several.
  void hostTime(const char* text, const std::function<void()>& call) {
    if (bench_.outOfTime(text)) return;
    const int calls = bench_.quick() ? 5 : 100;
    const double us = medianOf(2 * bench_.repeats() + 1, [&] {
      const auto begin = Clock::now();
      for (int i = 0; i < calls; ++i) call();
      const double spent = microsecondsSince(begin) / calls;
      bench_.gpu.finish();
      CU_CHECK(cuCtxSynchronize());
      return spent;
    });
    bench_.report.result({{"call", text}, {"host_us", us}});
    bench_.report.line("  %-64s %8.2f us", text, us);
  }

  /// From before the launch until the host sees what the kernel stored first, and until it knows of the end.
  void untilSeen(const char* text, bool remote) {
    if (bench_.outOfTime(text)) return;
    std::vector<double> started, queried, synchronized;
    const std::uint32_t repeats = bench_.quick() ? 3 : 101;
    volatile std::uint32_t* seen = seen_.host<std::uint32_t>();
    for (std::uint32_t i = 1; i <= 2 * repeats; ++i) {
      StampParams params{nullptr, seen_.get<std::uint32_t>(), ++number_, 0};
      const Launcher launch{bench_.gpu.kernel("launch_stamp"), bench_.gpu.stream(), &params, remote, remote};
      const auto begin = Clock::now();
      launch();
      if (i % 2 == 0) {
        CU_CHECK(cuStreamSynchronize(bench_.gpu.stream()));
        synchronized.push_back(microsecondsSince(begin));
        continue;
      }
      while (*seen != params.number && microsecondsSince(begin) < static_cast<double>(bench_.spinLimit()) / 1e3)
        continue;
      started.push_back(microsecondsSince(begin));
      bench_.gpu.finish();
      queried.push_back(microsecondsSince(begin));
    }
    bench_.report.result({{"call", text},
                          {"until_first_store_us", median(started)},
                          {"until_query_us", median(queried)},
                          {"until_synchronize_us", median(synchronized)}});
    bench_.report.line("  %-64s %8.2f us; end known by query %.2f us, by synchronize %.2f us", text, median(started),
                       median(queried), median(synchronized));
  }

  /// From the end of a kernel to the begin of the next one, by the device's clock. `between`: calls between the two,
  /// the stream of the second.
  void gap(const char* text, bool remote, const std::function<CUstream()>& between) {
    if (bench_.outOfTime(text)) return;
    const unsigned kernels = bench_.quick() ? 4 : 64;
    for (unsigned i = 0; i < kernels; ++i) {
      StampParams params{times_.get<BlockTime>(), nullptr, 0, i};
      const CUstream stream = i % 2 == 0 ? bench_.gpu.stream() : between();
      Launcher{bench_.gpu.kernel("launch_stamp"), stream, &params, remote, remote}();
      if (stream != bench_.gpu.stream()) CU_CHECK(cuStreamSynchronize(stream));
    }
    bench_.gpu.finish();
    const auto times = times_.read<BlockTime>(kernels);
    std::vector<double> gaps;
    for (unsigned i = 1; i < kernels; i += 2)
      gaps.push_back(static_cast<double>(static_cast<std::int64_t>(times[i].begin - times[i - 1].end)) / 1e3);
    bench_.report.result({{"call", text}, {"gap_us", median(gaps)}});
    bench_.report.line("  %-64s %8.2f us", text, median(gaps));
  }

  Extras extras;

 private:
  Bench& bench_;
  Memory times_;
  Memory seen_;
  std::uint32_t number_ = 0;
};

void hostTimes(Bench& bench, Calls& calls) {
  StampParams none{};
  LongParams many{};
  Gpu& gpu = bench.gpu;
  const Launcher plain{gpu.kernel("launch_empty"), gpu.stream(), &none};
  Launcher long4k{gpu.kernel("launch_long"), gpu.stream(), &many};
  calls.hostTime("cuLaunchKernel, 24 bytes of arguments", plain);
  calls.hostTime("cuLaunchKernel, 4 KB of arguments, as shipped", long4k);
  Launcher extended = plain;
  extended.extended = true;
  calls.hostTime("cuLaunchKernelEx without attributes", extended);
  extended.remote = true;
  calls.hostTime("cuLaunchKernelEx, memory domain remote", extended);
  extended.begun = calls.extras.event;
  calls.hostTime("cuLaunchKernelEx, memory domain remote, launch completion event", extended);
  Launcher wide = plain;
  wide.blocks = 32;
  calls.hostTime("cuLaunchKernel of 32 blocks", wide);
  calls.hostTime("cuEventRecord (no timing)", [&] { CU_CHECK(cuEventRecord(calls.extras.event, gpu.stream())); });
  calls.hostTime("cuEventRecord and cuStreamWaitEvent by another stream", [&] {
    CU_CHECK(cuEventRecord(calls.extras.event, gpu.stream()));
    CU_CHECK(cuStreamWaitEvent(calls.extras.stream, calls.extras.event, 0));
  });
  calls.hostTime("cuLaunchKernel and cuEventRecord", [&] {
    plain();
    CU_CHECK(cuEventRecord(calls.extras.event, gpu.stream()));
  });
  calls.hostTime("cuEventQuery", [&] {
    const CUresult state = cuEventQuery(calls.extras.event);
    if (state != CUDA_ERROR_NOT_READY) CU_CHECK(state);
  });
}

}  // namespace

void runLaunch(Bench& bench) {
  Calls calls(bench);
  bench.report.line("launch: what calls cost the thread that makes them (empty kernels, 1 block of 512 threads)");
  hostTimes(bench, calls);
  bench.report.line("  from the call of the launch until the host sees the kernel's first store:");
  calls.untilSeen("cuLaunchKernel", false);
  calls.untilSeen("cuLaunchKernelEx, memory domain remote", true);
  bench.report.line("  from the end of a kernel to the begin of the next, by the device's clock:");
  const auto same = [&] { return bench.gpu.stream(); };
  calls.gap("same stream", false, same);
  calls.gap("same stream, memory domain remote", true, same);
  calls.gap("another stream that waits for an event", false, [&] {
    CU_CHECK(cuEventRecord(calls.extras.event, bench.gpu.stream()));
    CU_CHECK(cuStreamWaitEvent(calls.extras.stream, calls.extras.event, 0));
    return calls.extras.stream;
  });
}

}  // namespace micro
