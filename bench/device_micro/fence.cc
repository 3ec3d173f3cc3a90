// Item fence: what it costs a block to publish what it has stored, and a barrier.
#include <cstdio>
#include <map>
#include <utility>

#include "bench/device_micro/bench.h"
#include "bench/device_micro/launcher.h"
#include "bench/device_micro/params.h"

namespace micro {

namespace {

struct Way {
  Publish publish;
  const char* text;
  bool usesFlag;
};

constexpr Way kNothing{Publish::Nothing, "nothing", false};
constexpr Way kShipped{Publish::StoreReleaseSys, "st.release.sys, as shipped", true};
constexpr Way kWays[] = {
    kNothing,
    {Publish::FenceAcqRelGpu, "fence.acq_rel.gpu", false},
    {Publish::FenceAcqRelSys, "fence.acq_rel.sys", false},
    {Publish::FenceScGpu, "fence.sc.gpu", false},
    {Publish::FenceScSys, "fence.sc.sys: __threadfence_system", false},
    {Publish::StoreRelaxedSys, "st.relaxed.sys", true},
    kShipped,
    {Publish::StoreReleaseGpu, "st.release.gpu", true},
    {Publish::FenceSysStore, "fence.acq_rel.sys, st.relaxed.sys", true},
    {Publish::FenceGpuStore, "fence.acq_rel.gpu, st.relaxed.sys", true},
    {Publish::EachThreadFencesSys, "all threads fence.sys; st.relaxed", true},
    {Publish::RedRelaxedSys, "red.relaxed.sys.add", true},
    {Publish::RedReleaseSys, "red.release.sys.add", true},
    {Publish::AtomRelaxedSys, "atom.relaxed.sys.add", true},
    {Publish::AtomReleaseSys, "atom.release.sys.add", true},
    {Publish::LoadRelaxedSys, "ld.relaxed.sys", true},
    {Publish::LoadAcquireSys, "ld.acquire.sys", true},
};

class Publisher {
 public:
  explicit Publisher(Bench& bench)
      : bench_(bench),
        data_(Memory::Place::Device, kFenceWindow),
        times_(Memory::Place::Device, sizeof(BlockTime)),
        inDevice_(Memory::Place::Device, 4096),
        inHost_(Memory::Place::Host, 4096) {}

  /// Nanoseconds that an iteration takes, and those of them that the publishing thread spends on it.
  std::pair<double, double> measure(const Way& way, unsigned stores, bool host, unsigned threads) {
    FenceParams params{};
    params.data = data_.get();
    params.flag = (host ? inHost_ : inDevice_).get<std::uint64_t>();
    params.publish = way.publish;
    params.stores = stores;
    params.iterations = bench_.quick() ? 20 : 2000;
    params.times = times_.get<BlockTime>();
    std::vector<double> whole, own;
    for (int i = -1; i < bench_.repeats(); ++i) {
      bench_.gpu.run("publish_often", {1, threads}, params);
      const BlockTime time = times_.read<BlockTime>(1)[0];
      if (i < 0) continue;
      const double nanoseconds = static_cast<double>(time.end - time.begin);
      const double perCycle = nanoseconds / static_cast<double>(std::max<std::uint64_t>(time.cycles, 1));
      whole.push_back(nanoseconds / params.iterations);
      own.push_back(static_cast<double>(time.extra) * perCycle / params.iterations);
    }
    return {median(whole), median(own)};
  }

  /// The same as text: what an iteration takes longer than without publishing / what the thread spends.
  std::string cell(const Way& way, unsigned stores, bool host, unsigned threads) {
    const auto [whole, own] = measure(way, stores, host, threads);
    if (way.publish == Publish::Nothing) base_[{stores, threads}] = whole;
    const double added = whole - base_[{stores, threads}];
    bench_.report.result({{"publish", way.text},
                          {"stores_per_thread", stores},
                          {"flag", !way.usesFlag ? "none"
                                   : host        ? "host"
                                                 : "device"},
                          {"threads", threads},
                          {"iteration_ns", whole},
                          {"added_ns", added},
                          {"own_ns", own}});
    char text[32];
    std::snprintf(text, sizeof(text), "%7.0f/%-6.0f", way.publish == Publish::Nothing ? whole : added, own);
    return text;
  }

 private:
  Bench& bench_;
  Memory data_;
  Memory times_;
  Memory inDevice_;
  Memory inHost_;
  std::map<std::pair<unsigned, unsigned>, double> base_;
};

/// Fences wait for stores that others made as well: beside a kernel of another stream that copies, and apart from it by
/// the memory domain.
class BesideCopy {
 public:
  explicit BesideCopy(Bench& bench)
      : bench_(bench),
        blocks_(bench.quick() ? 2 : 64),
        memory_(Memory::Place::Device, 2 * blocks_ * kSpan),
        data_(Memory::Place::Device, kFenceWindow + 4096),
        times_(Memory::Place::Device, (blocks_ + 1) * sizeof(BlockTime)) {}

  /// Nanoseconds of an iteration. `covered`: the copy lasted longer.
  double measure(const Way& way, bool remote, bool& covered) {
    FenceParams params{};
    params.data = data_.get();
    params.flag = data_.get<std::uint64_t>(kFenceWindow);
    params.publish = way.publish;
    params.stores = 1;
    params.iterations = bench_.quick() ? 5 : 500;
    params.times = times_.get<BlockTime>(blocks_ * sizeof(BlockTime));
    CopyParams copy{};
    copy.from = memory_.get();
    copy.to = memory_.get(blocks_ * kSpan);
    copy.fromStride = copy.toStride = copy.fromSpan = copy.toSpan = kSpan;
    copy.chunk = bench_.quick() ? 16 << 10 : 1 << 20;
    copy.passes = bench_.quick() ? 4 : 200;
    copy.times = times_.get<BlockTime>();
    Launcher copying{bench_.gpu.kernel("copy_shipped_4"), extras_.stream, &copy};
    copying.blocks = blocks_;
    Launcher publishing{bench_.gpu.kernel("publish_often"), bench_.gpu.stream(), &params, true, remote};
    publishing.threads = bench_.quick() ? 64 : 512;
    const auto once = [&] {
      copying();
      publishing();
      bench_.gpu.finish();
      CU_CHECK(cuStreamSynchronize(extras_.stream));
      const auto times = times_.read<BlockTime>(blocks_ + 1);
      const BlockTime& mine = times.back();
      covered = covered && times[0].begin <= mine.begin && times[0].end >= mine.end;
      return static_cast<double>(mine.end - mine.begin) / params.iterations;
    };
    once();  // loads the kernels
    covered = true;
    return medianOf(bench_.repeats(), once);
  }

  void line(const Way& way) {
    std::string text;
    for (const bool remote : {false, true}) {
      bool covered = true;
      const double whole = measure(way, remote, covered);
      if (way.publish == Publish::Nothing) base_[remote] = whole;
      const double added = whole - base_[remote];
      bench_.report.result({{"publish", way.text},
                            {"beside_blocks", blocks_},
                            {"domain", remote ? "remote" : "default"},
                            {"covered", covered},
                            {"iteration_ns", whole},
                            {"added_ns", added}});
      char cell[48];
      std::snprintf(cell, sizeof(cell), "%8.0f%s", way.publish == Publish::Nothing ? whole : added,
                    covered ? " " : "?");
      text += cell;
    }
    bench_.report.line("    %-32s%s", way.text, text.c_str());
  }

 private:
  static constexpr std::size_t kSpan = 4 << 20;
  Bench& bench_;
  unsigned blocks_;
  Memory memory_;
  Memory data_;
  Memory times_;
  Extras extras_;
  double base_[2] = {};
};

void besideCopy(Bench& bench) {
  if (bench.outOfTime("beside a copy")) return;
  BesideCopy beside(bench);
  bench.report.line(
      "  the same, 1 store per thread, beside blocks that copy in another stream (?: not all the time); launched");
  bench.report.line("  in memory domain:                   default   remote");
  for (const Way& way : kWays) {
    const bool shown = way.publish == Publish::Nothing || way.publish == Publish::FenceAcqRelGpu ||
                       way.publish == Publish::FenceAcqRelSys || way.publish == Publish::StoreReleaseSys;
    if (shown) beside.line(way);
  }
}

void barriers(Bench& bench) {
  Memory times(Memory::Place::Device, sizeof(BlockTime));
  std::string text;
  for (unsigned threads : bench.quick() ? std::vector{128u} : std::vector{32u, 128u, 256u, 384u, 512u, 640u}) {
    if (bench.outOfTime("barrier")) return;
    const BarrierParams params{bench.quick() ? 50u : 10000u, times.get<BlockTime>()};
    const double ns = medianOf(bench.repeats(), [&] {
      bench.gpu.run("barrier_often", {1, threads}, params);
      const BlockTime time = times.read<BlockTime>(1)[0];
      return static_cast<double>(time.end - time.begin) / static_cast<double>(params.iterations);
    });
    bench.report.result({{"publish", "barrier"}, {"threads", threads}, {"iteration_ns", ns}});
    char cell[48];
    std::snprintf(cell, sizeof(cell), "  %u: %.1f", threads, ns);
    text += cell;
  }
  bench.report.line("  bar.sync, ns by threads:%s", text.c_str());
}

}  // namespace

void runFence(Bench& bench) {
  Publisher publisher(bench);
  const std::vector<unsigned> stores = bench.quick() ? std::vector{1u} : std::vector{0u, 1u, 8u};
  const unsigned threads = bench.quick() ? 64 : 512;
  bench.report.line(
      "fence: one block of %u threads stores, barrier, one thread publishes, barrier. Nanoseconds that this", threads);
  bench.report.line(
      "  takes longer than without publishing / that the thread itself spends; 16-byte stores per thread:");
  bench.report.line("  %-34s%s", "(of 'nothing': what all of it takes)",
                    bench.quick() ? "      1" : "  0             1             8             1, flag in host memory");
  for (const Way& way : kWays) {
    if (bench.outOfTime(way.text)) continue;
    std::string text;
    for (unsigned n : stores) text += publisher.cell(way, n, false, threads);
    if (way.usesFlag) text += publisher.cell(way, stores.size() > 1 ? 1 : stores[0], true, threads);
    bench.report.line("  %-34s%s", way.text, text.c_str());
  }
  if (!bench.quick() && !bench.outOfTime("one warp")) {
    publisher.cell(kNothing, 1, false, 32);
    bench.report.line("  %-34s              %s", "as shipped, but 32 threads",
                      publisher.cell(kShipped, 1, false, 32).c_str());
  }
  besideCopy(bench);
  barriers(bench);
}

}  // namespace micro
