// Ranks as threads of one process, or one rank of several, whose calls do not match: cell by cell of a matrix, each
// with a communicator of its own unless calls are checked before they are launched (TUTTI_CHECK_CALLS), where one goes
// on through all. Every rank must get an error that names two ranks and both calls.
//   mismatch threads RANKS...           all cells, by these numbers of ranks
//   mismatch watched RANKS...           all cells at once, and nobody ends anything before the watch has told all ranks
//   mismatch idle RANKS...              a rank does not make a call, and the others wait: reports of stalls name it
//   mismatch left RANKS...              it destroys the communicator instead
//   mismatch messages RANKS...          messages with another length on their two ends
//   mismatch process RANK SIZE COLLECTIVE DIFFERENCE    one rank of one cell
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "cuda_runtime.h"
#include "nccl.h"

namespace {

constexpr std::size_t kCount = 4096;
constexpr int kMostRanks = 8;
constexpr std::size_t kRoom = kCount * kMostRanks;
constexpr int kFuncs = 5;
constexpr int kDifferences = 7;
/// What a loaded machine may add to the time of a stall until all ranks are told.
constexpr std::chrono::seconds kSlack{10};

using Clock = std::chrono::steady_clock;

enum Func { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter };
enum Difference { Count, Type, Operator, Root, Kind, Order, Missing };
const char* const kFuncNames[] = {"AllReduce", "Reduce", "Broadcast", "AllGather", "ReduceScatter"};
const char* const kDifferenceNames[] = {"count", "type", "operator", "root", "kind", "order", "missing"};

struct Made {
  int func = AllReduce;
  std::size_t count = kCount;
  ncclDataType_t type = ncclInt32;
  ncclRedOp_t op = ncclSum;
  int root = 0;
};

struct Cell {
  int func = 0;
  int difference = 0;
  int number = 0;
  Made right;
  Made wrong;
};

bool reduces(int func) {
  return func != Broadcast && func != AllGather;
}
bool hasRoot(int func) {
  return func == Reduce || func == Broadcast;
}

std::vector<Cell> allCells() {
  std::vector<Cell> cells;
  for (int func = 0; func < kFuncs; ++func) {
    for (int difference = 0; difference < kDifferences; ++difference) {
      if ((difference == Operator && !reduces(func)) || (difference == Root && !hasRoot(func))) continue;
      Cell cell;
      cell.func = func;
      cell.difference = difference;
      cell.number = static_cast<int>(cells.size());
      cell.right.func = cell.wrong.func = func;
      if (difference == Count) cell.wrong.count = func % 2 == 0 ? kCount / 2 : 1;
      if (difference == Type) cell.wrong.type = ncclInt8;
      if (difference == Operator) cell.wrong.op = ncclMax;
      if (difference == Root) cell.wrong.root = 1;
      if (difference == Kind) cell.wrong.func = func == Broadcast ? AllReduce : Broadcast;
      if (difference == Order || difference == Missing) cell.wrong.func = func == AllReduce ? AllGather : AllReduce;
      cells.push_back(cell);
    }
  }
  return cells;
}

std::string textOf(const Made& call) {
  std::string text = std::string(kFuncNames[call.func]) + " of " + std::to_string(call.count) +
                     (call.type == ncclInt32 ? " ncclInt32" : " ncclInt8");
  if (reduces(call.func)) text += call.op == ncclSum ? ", sum" : ", max";
  if (hasRoot(call.func)) text += ", root " + std::to_string(call.root);
  return text;
}

/// What one rank needs. Its stream waits for no other: communicators of one device may be called at once.
struct Rank {
  int* in = nullptr;
  int* out = nullptr;
  cudaStream_t stream = nullptr;
};

Rank newRank(int rank) {
  Rank one;
  CHECK(cudaSetDevice(rank), cudaSuccess);
  CHECK(cudaMalloc(reinterpret_cast<void**>(&one.in), kRoom * sizeof(int)), cudaSuccess);
  CHECK(cudaMalloc(reinterpret_cast<void**>(&one.out), kRoom * sizeof(int)), cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking), cudaSuccess);
  const std::vector<int> values(kRoom, rank + 1);
  CHECK(cudaMemcpy(one.in, values.data(), kRoom * sizeof(int), cudaMemcpyHostToDevice), cudaSuccess);
  return one;
}

/// Made once for all cells that come one after the other.
Rank& rankAt(int rank) {
  static Rank ranks[kMostRanks];
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Rank& one = ranks[rank];
  CHECK(cudaSetDevice(rank), cudaSuccess);
  if (one.in == nullptr) one = newRank(rank);
  return one;
}

ncclResult_t make(ncclComm_t comm, const Rank& at, const Made& call) {
  switch (call.func) {
    case AllReduce:
      return ncclAllReduce(at.in, at.out, call.count, call.type, call.op, comm, at.stream);
    case Reduce:
      return ncclReduce(at.in, at.out, call.count, call.type, call.op, call.root, comm, at.stream);
    case Broadcast:
      return ncclBroadcast(at.in, at.out, call.count, call.type, call.root, comm, at.stream);
    case AllGather:
      return ncclAllGather(at.in, at.out, call.count, call.type, comm, at.stream);
    default:
      return ncclReduceScatter(at.in, at.out, call.count, call.type, call.op, comm, at.stream);
  }
}

bool resultIs(const Rank& at, int expected) {
  std::vector<int> values(kCount);
  CHECK(cudaStreamSynchronize(at.stream), cudaSuccess);
  CHECK(cudaMemcpy(values.data(), at.out, kCount * sizeof(int), cudaMemcpyDeviceToHost), cudaSuccess);
  for (const int value : values) {
    if (value != expected) return false;
  }
  return true;
}
bool sumIsRight(const Rank& at, int ranks) {
  return resultIs(at, ranks * (ranks + 1) / 2);
}

/// Whether that call may have ended, with a right result, before others have made theirs.
bool needsNobody(const Rank& at, const Made& call, int rank) {
  if (call.func == Reduce) return rank != call.root;
  return call.func == Broadcast && (rank == call.root || call.count < kCount || resultIs(at, call.root + 1));
}

/// When all ranks must have been told, without any call of theirs.
Clock::time_point limitFrom(Clock::time_point begun) {
  const char* const given = std::getenv("TUTTI_STALL_SEC");
  CHECK(given != nullptr, true);
  return begun + std::chrono::seconds(std::atoi(given)) + kSlack;
}

ncclResult_t awaitError(ncclComm_t comm, Clock::time_point end) {
  ncclResult_t state = ncclSuccess;
  while (state == ncclSuccess && Clock::now() < end) {
    CHECK(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return state;
}

void endIt(ncclComm_t comm) {
  CHECK(ncclCommAbort(comm), ncclSuccess);
}

std::atomic<int> failures{0};

void complain(const std::string& where, const std::string& what) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  ++failures;
  std::printf("failed: %s: %s\n", where.c_str(), what.c_str());
  std::fflush(stdout);
}

/// An error that names the rank that differs, another one, and both calls.
bool isNamed(ncclResult_t result, const std::string& text, int odd, const Cell& cell) {
  const auto has = [&text](const std::string& part) { return text.find(part) != std::string::npos; };
  const std::size_t first = text.find("rank ");
  const bool two = first != std::string::npos && text.find("rank ", first + 5) != std::string::npos;
  return result == ncclInvalidUsage && has("The calls of two ranks do not match") && two &&
         has("rank " + std::to_string(odd) + " (host ") && has(textOf(cell.right)) && has(textOf(cell.wrong)) &&
         has("2nd");
}

std::string placeOf(const Cell& cell, int rank, int ranks) {
  return std::string(kFuncNames[cell.func]) + ", " + kDifferenceNames[cell.difference] + ", rank " +
         std::to_string(rank) + " of " + std::to_string(ranks);
}

/// The rank that calls something else.
int oddOf(const Cell& cell, int ranks) {
  return cell.number % 3 == 0 ? 0 : ranks - 1;
}

/// The calls of a cell, as far as they succeed.
ncclResult_t makeCell(ncclComm_t comm, const Rank& at, const Cell& cell, bool odd) {
  ncclResult_t result = make(comm, at, odd ? cell.wrong : cell.right);
  const bool more = cell.difference == Order || (cell.difference == Missing && !odd);
  if (more && result == ncclSuccess) result = make(comm, at, odd ? cell.right : cell.wrong);
  return result;
}

/// Found at the latest as the communicator ends: whether this rank was told. Every way to end takes its turn.
bool unchecked(const Cell& cell, const ncclUniqueId& id, int rank, int ranks) {
  const Rank& at = rankAt(rank);
  const int odd = oddOf(cell, ranks);
  ncclComm_t comm = nullptr;
  // Others may be so far ahead that what they differ in is known before this rank has come to it.
  ncclResult_t result = ncclCommInitRank(&comm, ranks, id, rank);
  if (result == ncclSuccess) result = make(comm, at, Made{});
  if (result == ncclSuccess) result = makeCell(comm, at, cell, rank == odd);
  const int way = cell.number % 8;
  if (result == ncclSuccess && way == 1) result = awaitError(comm, limitFrom(Clock::now()));
  if (result == ncclSuccess && way % 2 == 0) result = ncclCommFinalize(comm);
  const bool ended = result == ncclSuccess;
  if (ended) result = ncclCommDestroy(comm);
  const std::string text = ncclGetLastError(ended ? nullptr : comm);
  const bool named = isNamed(result, text, odd, cell);
  const bool early = result == ncclSuccess && needsNobody(at, rank == odd ? cell.wrong : cell.right, rank);
  if (!named && !early) complain(placeOf(cell, rank, ranks), std::to_string(result) + ": " + text);
  if (!ended && comm != nullptr) endIt(comm);
  return named;
}

/// Refused by all ranks alike, before anything runs; then the communicator goes on.
void checked(ncclComm_t comm, const Cell& cell, int rank, int ranks) {
  const Rank& at = rankAt(rank);
  const int odd = oddOf(cell, ranks);
  const int times = cell.difference == Order ? 2 : 1;
  for (int time = 0; time < times; ++time) {
    const ncclResult_t result = make(comm, at, (rank == odd) == (time == 0) ? cell.wrong : cell.right);
    const std::string text = ncclGetLastError(comm);
    if (!isNamed(result, text, odd, cell))
      complain(placeOf(cell, rank, ranks) + ", checked", std::to_string(result) + ": " + text);
  }
}

void onThreads(int ranks, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

ncclUniqueId newId() {
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id), ncclSuccess);
  return id;
}

bool mustCheck() {
  const char* const given = std::getenv("TUTTI_CHECK_CALLS");
  return given != nullptr && std::string(given) == "1";
}

/// One communicator for all of them.
void checkedInTurn(std::span<const Cell> cells, const ncclUniqueId& id, int rank, int ranks) {
  const Rank& at = rankAt(rank);
  ncclComm_t comm = nullptr;
  CHECK(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
  CHECK(make(comm, at, Made{}), ncclSuccess);
  for (const Cell& cell : cells) checked(comm, cell, rank, ranks);
  CHECK(make(comm, at, Made{}), ncclSuccess);
  if (!sumIsRight(at, ranks)) complain("after all refusals", "a wrong sum");
  CHECK(ncclCommDestroy(comm), ncclSuccess);
}

void matrix(int ranks) {
  const std::vector<Cell> cells = allCells();
  if (!mustCheck()) {
    for (const Cell& cell : cells) {
      const ncclUniqueId id = newId();
      std::atomic<int> named{0};
      onThreads(ranks, [&](int rank) { named += unchecked(cell, id, rank, ranks) ? 1 : 0; });
      if (named == 0) complain(placeOf(cell, 0, ranks), "no rank was told");
    }
  } else {
    const ncclUniqueId id = newId();
    onThreads(ranks, [&](int rank) { checkedInTurn(cells, id, rank, ranks); });
  }
  std::printf("%zu cells of %d ranks\n", cells.size(), ranks);
}

/// The ranks of a cell call at once, and end at once. Returns how long it took until this one was told.
Clock::duration toldByTheWatch(const Cell& cell, const Rank& at, const ncclUniqueId& id, std::barrier<>& together,
                               int rank, int ranks) {
  const int odd = oddOf(cell, ranks);
  ncclComm_t comm = nullptr;
  CHECK(cudaSetDevice(rank), cudaSuccess);
  CHECK(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
  CHECK(make(comm, at, Made{}), ncclSuccess);
  together.arrive_and_wait();
  const Clock::time_point begun = Clock::now();
  ncclResult_t result = makeCell(comm, at, cell, rank == odd);
  if (result == ncclSuccess) result = awaitError(comm, limitFrom(begun));
  const Clock::time_point told = Clock::now();
  const std::string text = ncclGetLastError(comm);
  const std::string where = placeOf(cell, rank, ranks) + ", watched";
  if (!isNamed(result, text, odd, cell)) complain(where, std::to_string(result) + ": " + text);
  if (told > limitFrom(begun)) complain(where, "told too late");
  together.arrive_and_wait();  // an abort of one is told to the others
  endIt(comm);
  return told - begun;
}

void watched(int ranks) {
  const std::vector<Cell> cells = allCells();
  std::vector<ncclUniqueId> ids;
  std::vector<std::unique_ptr<std::barrier<>>> together;
  std::vector<Rank> members;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    ids.push_back(newId());
    together.push_back(std::make_unique<std::barrier<>>(ranks));
    for (int rank = 0; rank < ranks; ++rank) members.push_back(newRank(rank));
  }
  std::vector<Clock::duration> times(members.size());
  onThreads(static_cast<int>(members.size()), [&](int thread) {
    const auto member = static_cast<std::size_t>(thread);
    const auto cell = static_cast<std::size_t>(thread / ranks);
    times[member] = toldByTheWatch(cells[cell], members[member], ids[cell], *together[cell], thread % ranks, ranks);
  });
  const std::chrono::duration<double> last = *std::max_element(times.begin(), times.end());
  std::printf("%zu cells of %d ranks, the last one told after %.1f s\n", cells.size(), ranks, last.count());
}

Cell missedCall(int func) {
  Cell cell;
  cell.func = cell.right.func = func;
  cell.difference = Missing;
  cell.right.root = func == Broadcast ? 1 : 0;  // rank 0 waits for others
  return cell;
}

/// The last rank destroys the communicator where all others make one more call.
void left(const Cell& cell, const Rank& at, int rank, int ranks, ncclComm_t comm) {
  if (rank == ranks - 1) {
    if (!sumIsRight(at, ranks)) complain(placeOf(cell, rank, ranks), "a wrong sum");
    ncclCommDestroy(comm);
    return;
  }
  ncclResult_t result = make(comm, at, cell.right);
  if (result == ncclSuccess) result = ncclCommFinalize(comm);
  const std::string text = ncclGetLastError(comm);
  const auto has = [&text](const std::string& part) { return text.find(part) != std::string::npos; };
  const std::string gone = "rank " + std::to_string(ranks - 1) + " (host ";
  // Who sees it first tells the others.
  const bool told = result == ncclInvalidUsage || (result == ncclRemoteError && has("(heard by rank "));
  const bool named = told && has(gone) && has(textOf(cell.right));
  const bool early = result == ncclSuccess && !mustCheck() && needsNobody(at, cell.right, rank);
  if (!named && !early) complain(placeOf(cell, rank, ranks), std::to_string(result) + ": " + text);
  if (early) {
    ncclCommDestroy(comm);
  } else {
    endIt(comm);
  }
}

/// It stays, and makes no call: nothing ends, and reports of stalls name it.
void idle(const Cell& cell, const Rank& at, bool last, ncclComm_t comm) {
  if (!last) CHECK(make(comm, at, cell.right), ncclSuccess);
  std::this_thread::sleep_for(std::chrono::seconds(60));
}

/// Five communicators of each number of ranks, all at once, for each takes seconds.
void missing(std::span<const int> numbers, bool leaves) {
  struct Member {
    int func, rank, ranks;
    ncclUniqueId id;
    Rank at;
  };
  std::vector<Member> members;
  for (const int ranks : numbers) {
    for (int func = 0; func < kFuncs; ++func) {
      const ncclUniqueId id = newId();
      for (int rank = 0; rank < ranks; ++rank) members.push_back({func, rank, ranks, id, newRank(rank)});
    }
  }
  onThreads(static_cast<int>(members.size()), [&](int thread) {
    const auto& [func, rank, ranks, id, at] = members[static_cast<std::size_t>(thread)];
    CHECK(cudaSetDevice(rank), cudaSuccess);
    ncclComm_t comm = nullptr;
    CHECK(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
    CHECK(make(comm, at, Made{}), ncclSuccess);
    if (leaves) {
      left(missedCall(func), at, rank, ranks, comm);
    } else {
      idle(missedCall(func), at, rank == ranks - 1, comm);
    }
  });
  for (const int ranks : numbers) std::printf("%d cells of %d ranks\n", kFuncs, ranks);
}

/// The first and the last rank exchange messages, one of which has two lengths: both hear of it, whether the shorter
/// end is the sender's or the receiver's, and whether anybody waits for that.
void messages(int ranks) {
  struct Lengths {
    std::size_t sent, received;
    ncclDataType_t type;  // of the receive; the send is of ncclInt32
  };
  const Lengths all[] = {{4096, 2048, ncclInt32}, {64, 4096, ncclInt32}, {4096, 4096, ncclInt8}, {64, 0, ncclInt32}};
  for (const Lengths& lengths : all) {
    const ncclUniqueId id = newId();
    std::barrier together(ranks);
    onThreads(ranks, [&](int rank) {
      const Rank& at = rankAt(rank);
      ncclComm_t comm = nullptr;
      CHECK(ncclCommInitRank(&comm, ranks, id, rank), ncclSuccess);
      together.arrive_and_wait();
      ncclResult_t result = ncclSuccess;
      if (rank == 0) result = ncclSend(at.in, 16, ncclInt32, ranks - 1, comm, at.stream);
      if (rank == ranks - 1) result = ncclRecv(at.out, 64, ncclInt8, 0, comm, at.stream);
      if (result != ncclSuccess) complain("messages", "the first of them fails");
      if (rank == 0) result = ncclSend(at.in, lengths.sent, ncclInt32, ranks - 1, comm, at.stream);
      if (rank == ranks - 1) result = ncclRecv(at.out, lengths.received, lengths.type, 0, comm, at.stream);
      together.arrive_and_wait();  // all calls are made
      if (result == ncclSuccess) result = ncclCommFinalize(comm);
      const std::string text = ncclGetLastError(comm);
      const std::string type = lengths.type == ncclInt32 ? " ncclInt32" : " ncclInt8";
      const auto has = [&text](const std::string& part) { return text.find(part) != std::string::npos; };
      const bool named = result == ncclInvalidUsage && has("The messages of two ranks do not match. rank 0 (host ") &&
                         has(" sends " + std::to_string(lengths.sent) + " ncclInt32 as its 2nd message to rank ") &&
                         has("; rank " + std::to_string(ranks - 1) + " (host ") &&
                         has(" receives " + std::to_string(lengths.received) + type + " as its 2nd from rank 0");
      const bool concerned = rank == 0 || rank == ranks - 1;
      if (concerned && !named)
        complain("messages, rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ", " +
                     std::to_string(lengths.sent),
                 std::to_string(result) + ": " + text);
      if (result == ncclSuccess) {
        ncclCommDestroy(comm);
      } else {
        endIt(comm);
      }
    });
  }
  std::printf("%zu messages between %d ranks\n", std::size(all), ranks);
}

void process(int rank, int ranks, const std::string& func, const std::string& difference) {
  const std::vector<Cell> cells = allCells();
  const auto cell = std::find_if(cells.begin(), cells.end(), [&](const Cell& one) {
    return kFuncNames[one.func] == func && kDifferenceNames[one.difference] == difference;
  });
  CHECK(cell != cells.end(), true);
  ncclUniqueId id;
  CHECK(ncclGetUniqueId(&id), ncclSuccess);  // NCCL_COMM_ID says where they meet
  bool told = true;
  if (mustCheck()) {
    checkedInTurn(std::span(&*cell, 1), id, rank, ranks);
  } else {
    told = unchecked(*cell, id, rank, ranks);
  }
  std::printf("%s\n", told ? "was told" : "waited for nobody");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "process" && argc == 6) {
    process(std::atoi(argv[2]), std::atoi(argv[3]), argv[4], argv[5]);
  } else {
    std::vector<int> numbers;
    for (int i = 2; i < argc; ++i) numbers.push_back(std::atoi(argv[i]));
    if (what == "idle" || what == "left") missing(numbers, what == "left");
    for (const int ranks : numbers) {
      if (what == "threads") matrix(ranks);
      if (what == "watched") watched(ranks);
      if (what == "messages") messages(ranks);
    }
  }
  std::printf("%s\n", failures == 0 ? "all named" : "not all named");
  return failures == 0 ? 0 : 1;
}
