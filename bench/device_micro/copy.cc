// Items copy and reduce: how fast blocks move data, by access, loads in flight, threads and blocks.
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>

#include "bench/device_micro/bench.h"
#include "bench/device_micro/params.h"

namespace micro {

namespace {

/// Where the data of a block lie. 0 bytes: in memory, never the same twice; else in a slot that stays in the cache.
struct Place {
  const char* name;
  std::uint64_t fromSlot;
  std::uint64_t toSlot;
};

/// A column of the table.
struct Column {
  Place place;
  unsigned blocks;
};

/// A row of the table.
struct Row {
  std::string kernel;
  const char* access;  ///< as the table says it
  int batch;
  unsigned threads;
  unsigned sharedBytes = 0;
  std::uint64_t barriers = 0;
};

constexpr Place kMemory{"memory", 0, 0};
constexpr Place kSlot512{"512K slot", 512 << 10, 512 << 10};
constexpr Place kSlot64{"64K slot", 64 << 10, 64 << 10};
constexpr Place kIntoSlot{"memory to 512K slot", 0, 512 << 10};
constexpr Place kOutOfSlot{"512K slot to memory", 512 << 10, 0};

/// A whole chunk, of the smallest.
constexpr std::size_t kVerified = 64 << 10;

/// Small whole numbers as bfloat16. A pair of them is a float with a short mantissa.
std::vector<std::uint16_t> numbers(unsigned most) {
  std::vector<std::uint16_t> values(64 << 10);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = static_cast<float>(1 + i * i % most);
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    values[i] = static_cast<std::uint16_t>(bits >> 16);
  }
  return values;
}
void addHalves(std::vector<std::uint16_t>& values, const std::vector<std::uint16_t>& more) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits[] = {std::uint32_t{values[i]} << 16, std::uint32_t{more[i]} << 16};
    float pair[2];
    std::memcpy(pair, bits, sizeof(pair));
    const float sum = pair[0] + pair[1];
    std::uint32_t whole;
    std::memcpy(&whole, &sum, sizeof(whole));
    values[i] = static_cast<std::uint16_t>(whole >> 16);
  }
}
void addFloats(std::vector<std::uint16_t>& values, const std::vector<std::uint16_t>& more) {
  for (std::size_t i = 0; i < values.size(); i += 2) {
    float pair[2];
    std::memcpy(&pair[0], &values[i], sizeof(float));
    std::memcpy(&pair[1], &more[i], sizeof(float));
    const float sum = pair[0] + pair[1];
    std::memcpy(&values[i], &sum, sizeof(sum));
  }
}

class Mover {
 public:
  explicit Mover(Bench& bench)
      : bench_(bench),
        bytes_(bench.quick() ? 4 << 20 : 512 << 20),
        from_(Memory::Place::Device, bytes_),
        other_(Memory::Place::Device, bytes_),
        to_(Memory::Place::Device, bytes_),
        times_(Memory::Place::Device, 1024 * sizeof(BlockTime)) {
    from_.fill(numbers(7));
    other_.fill(numbers(5));
  }

  /// GB/s of all blocks together, each byte of the output counted once; none: no time left.
  std::optional<double> measure(const Row& row, const Column& column) {
    if (bench_.outOfTime(row.kernel)) return std::nullopt;
    const CopyParams params = paramsFor(row, column);
    std::vector<double> byDevice, byEvents, byBlock;
    for (int i = -1; i < bench_.repeats(); ++i) {  // the first one loads the kernel and wakes the clocks
      CopyParams now = params;
      if (column.place.fromSlot == 0) now.from += offset_, now.other += offset_;
      if (column.place.toSlot == 0) now.to += offset_;
      advance(params, column);
      const bool verifies = verified_.insert(row.kernel).second;
      if (verifies) to_.clear();
      const double microseconds = bench_.gpu.run(row.kernel, {column.blocks, row.threads, row.sharedBytes}, now);
      if (i >= 0) add(now, column, microseconds, byDevice, byEvents, byBlock);
      if (verifies) verify(row, now, column);
    }
    const double total = median(byDevice);
    bench_.report.result({{"kernel", row.kernel},
                          {"access", row.access},
                          {"batch", row.batch},
                          {"threads", row.threads},
                          {"blocks", column.blocks},
                          {"place", column.place.name},
                          {"barriers_per_chunk", row.barriers},
                          {"chunk_bytes", params.chunk},
                          {"bytes_per_block", params.chunk * params.passes},
                          {"gb_per_s", total},
                          {"gb_per_s_by_events", median(byEvents)},
                          {"gb_per_s_of_a_block", median(byBlock)}});
    return total;
  }

  void print(const Row& row, const std::vector<Column>& columns) {
    std::string text;
    for (const Column& column : columns) {
      const std::optional<double> figure = measure(row, column);
      char cell[16];
      figure ? std::snprintf(cell, sizeof(cell), "%9.1f", *figure) : std::snprintf(cell, sizeof(cell), "%9s", "-");
      text += cell;
    }
    bench_.report.line("  %-28s %5d %7u%s", row.access, row.batch, row.threads, text.c_str());
  }

 private:
  CopyParams paramsFor(const Row& row, const Column& column) const {
    const std::uint64_t slot = std::max(column.place.fromSlot, column.place.toSlot);
    // In memory each launch moves at most half of the range, and the next one goes on behind it.
    const std::uint64_t most = bytes_ / 2 / column.blocks / (64 << 10) * (64 << 10);
    const std::uint64_t wanted = bench_.quick() ? 64 << 10 : slot != 0 ? 16 << 20 : 32 << 20;
    const bool slotsOnly = column.place.fromSlot != 0 && column.place.toSlot != 0;
    const std::uint64_t bytes = slotsOnly ? std::max(wanted, slot) : std::max(std::min(wanted, most), slot);
    CopyParams params{};
    params.from = from_.get();
    params.other = other_.get();
    params.to = to_.get();
    params.chunk = slot != 0 ? slot : bytes;
    params.passes = bytes / params.chunk;
    params.fromSpan = column.place.fromSlot != 0 ? slot : bytes / params.chunk * params.chunk;
    params.toSpan = column.place.toSlot != 0 ? slot : bytes / params.chunk * params.chunk;
    params.fromStride = params.fromSpan;
    params.toStride = params.toSpan;
    params.barriers = row.barriers;
    params.times = times_.get<BlockTime>();
    return params;
  }

  /// Where the next launch begins in memory.
  void advance(const CopyParams& params, const Column& column) {
    const std::uint64_t used = std::max(params.fromSpan, params.toSpan) * column.blocks;
    offset_ = offset_ + 2 * used > bytes_ ? 0 : offset_ + used;
  }

  void add(const CopyParams& params, const Column& column, double microseconds, std::vector<double>& byDevice,
           std::vector<double>& byEvents, std::vector<double>& byBlock) {
    const auto times = times_.read<BlockTime>(column.blocks);
    const double bytes = static_cast<double>(params.chunk * params.passes);
    std::uint64_t begin = ~std::uint64_t{0};
    std::uint64_t end = 0;
    std::vector<double> blocks;
    for (const BlockTime& time : times) {
      begin = std::min(begin, time.begin);
      end = std::max(end, time.end);
      blocks.push_back(bytes / static_cast<double>(std::max<std::uint64_t>(time.end - time.begin, 1)));
      if (time.extra != 0) bench_.report.failure("a wait of a bulk copy ran into its limit");
    }
    byDevice.push_back(bytes * column.blocks / static_cast<double>(std::max<std::uint64_t>(end - begin, 1)));
    byEvents.push_back(bytes * column.blocks / std::max(microseconds, 1e-3) / 1e3);
    byBlock.push_back(median(blocks));
  }

  /// The end of the last pass of the last block.
  void verify(const Row& row, const CopyParams& params, const Column& column) {
    const std::uint64_t end = params.chunk * params.passes;
    const std::uint64_t bytes = kVerified;
    const auto of = [&](const Memory& memory, const char* base, std::uint64_t stride, std::uint64_t span) {
      const std::uint64_t begin = static_cast<std::uint64_t>(base - memory.get());
      return memory.read<std::uint16_t>(bytes / 2, begin + (column.blocks - 1) * stride + (end - 1) % span + 1 - bytes);
    };
    auto expected = of(from_, params.from, params.fromStride, params.fromSpan);
    if (row.kernel.starts_with("sum_")) {
      const auto other = of(other_, params.other, params.fromStride, params.fromSpan);
      row.kernel.starts_with("sum_f32") ? addFloats(expected, other) : addHalves(expected, other);
    }
    if (of(to_, params.to, params.toStride, params.toSpan) != expected)
      bench_.report.failure(row.kernel + " does not give the right bytes");
  }

  Bench& bench_;
  std::set<std::string> verified_;
  std::uint64_t bytes_;
  Memory from_;
  Memory other_;
  Memory to_;
  Memory times_;
  std::uint64_t offset_ = 0;
};

constexpr unsigned kShippedThreads = 512;

std::vector<Row> copyRows() {
  std::vector<Row> rows{{"copy_shipped_4", "ld/st.volatile, as shipped", 4, kShippedThreads}};
  for (unsigned threads : {128u, 256u, 640u}) rows.push_back({"copy_shipped_4", "  as shipped", 4, threads});
  for (int batch : {1, 2, 6, 8})
    rows.push_back({"copy_shipped_" + std::to_string(batch), "  as shipped", batch, kShippedThreads});
  rows.push_back({"copy_shipped_8", "  as shipped", 8, 256});
  rows.push_back({"copy_shipped_4", "  with 2 barriers per chunk", 4, kShippedThreads, 0, 2});
  const struct {
    const char* name;
    const char* text;
    bool also8;
  } accesses[] = {{"volatile_global", "ld/st.volatile.global", true},
                  {"relaxed_gpu_global", "ld/st.relaxed.gpu.global", true},
                  {"plain", "ld/st, generic", true},
                  {"plain_global", "ld/st.global", true},
                  {"no_allocate", "ld/st.global L1::no_allocate", false},
                  {"nc_no_allocate", "ld.global.nc L1::no_allocate", true}};
  for (const auto& access : accesses) {
    rows.push_back({std::string("copy_") + access.name + "_4", access.text, 4, kShippedThreads});
    if (access.also8) rows.push_back({std::string("copy_") + access.name + "_8", access.text, 8, kShippedThreads});
  }
  rows.push_back({"copy_bulk", "cp.async.bulk, 8 x 16K", 1, 32, 128 << 10});
  return rows;
}

}  // namespace

void runCopy(Bench& bench) {
  Mover mover(bench);
  std::vector<Column> columns{{kMemory, 1},  {kMemory, 8},   {kMemory, 32}, {kMemory, bench.blocks(132)}, {kSlot512, 1},
                              {kSlot512, 8}, {kSlot512, 32}, {kSlot64, 1},  {kSlot64, bench.blocks(132)}};
  if (bench.quick()) columns = {{kMemory, 2}, {kSlot64, 1}};
  bench.report.line("copy: GB/s of all blocks together, every byte counted once (it is read and written);");
  if (!bench.quick()) {
    bench.report.line(
        "  data in memory, by blocks; in slots of 512K or 64K per block, which stay in the L2 cache (what is not "
        "volatile");
    bench.report.line("  or relaxed may read slots of 64K from the L1 cache)");
    bench.report.line("  %-28s %5s %7s%9s%9s%9s%9s%9s%9s%9s%9s%9s", "access", "batch", "threads", "1", "8", "32", "132",
                      "512K x1", "512K x8", "512K x32", "64K x1", "64K x132");
  }
  for (const Row& row : copyRows()) mover.print(row, columns);
  if (bench.quick()) return;
  bench.report.line("  %-28s %5s %7s%9s%9s%9s%9s%9s%9s", "memory <-> 512K slot", "", "", "in x1", "in x8", "in x32",
                    "out x1", "out x8", "out x32");
  columns = {{kIntoSlot, 1}, {kIntoSlot, 8}, {kIntoSlot, 32}, {kOutOfSlot, 1}, {kOutOfSlot, 8}, {kOutOfSlot, 32}};
  mover.print({"copy_shipped_4", "as shipped, 2 barriers", 4, kShippedThreads, 0, 2}, columns);
  mover.print({"copy_plain_global_8", "ld/st.global, 2 barriers", 8, kShippedThreads, 0, 2}, columns);
  mover.print({"copy_bulk", "cp.async.bulk, 8 x 16K", 1, 32, 128 << 10}, columns);
}

void runReduce(Bench& bench) {
  Mover mover(bench);
  std::vector<Column> columns{{kMemory, 1},  {kMemory, 8},  {kMemory, 32}, {kMemory, bench.blocks(132)},
                              {kSlot512, 1}, {kSlot512, 8}, {kSlot64, 1}};
  if (bench.quick()) columns = {{kMemory, 2}};
  bench.report.line("reduce: GB/s of the sum, all blocks together (two inputs are read, one output is written)");
  if (!bench.quick())
    bench.report.line("  %-28s %5s %7s%9s%9s%9s%9s%9s%9s%9s", "sum, access", "batch", "threads", "1", "8", "32", "132",
                      "512K x1", "512K x8", "64K x1");
  for (const std::string type : {"f32", "bf16"}) {
    const std::string shipped = "sum_" + type + "_shipped_";
    const std::string global = "sum_" + type + "_plain_global_";
    const std::string words = type + ", as shipped";
    const std::string other = type + ", ld/st.global";
    for (int batch : {1, 2, 4, 6})
      mover.print({shipped + std::to_string(batch), words.c_str(), batch, kShippedThreads}, columns);
    mover.print({shipped + "4", words.c_str(), 4, 256}, columns);
    mover.print({global + "4", other.c_str(), 4, kShippedThreads}, columns);
    mover.print({global + "6", other.c_str(), 6, kShippedThreads}, columns);
  }
}

}  // namespace micro
