// Runs GPU code (PTX) in one thread of the host: instructions by tables of operands and results, or whole kernels.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "softgpu/exec/operation.h"
#include "softgpu/ptx_library.h"

namespace tutti::softgpu::test {

/// What a 64-bit slot of memory holds: integers extended by their sign, or the bits of a number.
struct Word {
  std::uint64_t bits = 0;
  Word() = default;
  template <std::integral T>
  Word(T value) : bits(static_cast<std::uint64_t>(value)) {}
  Word(float value) : bits(std::bit_cast<std::uint32_t>(value)) {}
  Word(double value) : bits(std::bit_cast<std::uint64_t>(value)) {}
};

/// One or several words, so that a single one needs no braces.
struct Words : std::vector<Word> {
  Words() = default;
  Words(std::initializer_list<Word> words) : std::vector<Word>(words) {}
  template <typename T>
  requires std::integral<T> || std::floating_point<T> Words(T only) : std::vector<Word>{Word(only)} {}
  Words(Word only) : std::vector<Word>{only} {}
};

struct Case {
  Words operands;
  Words results;
};

/// Code that reads the registers %a %b %c %f and writes %d %e %g %h. `types` are theirs in this order: "s32 = s32 s32",
/// "b32 pred = b32". A result of the type f16, bf16, f32 or f64 may be any NaN where one is expected, of another type
/// every bit counts.
struct Instruction {
  std::string code;
  std::string types;
  std::vector<Case> cases;
  double relative = 0;  ///< by how much a result may be off, for f32 and f64
  double absolute = 0;  ///< likewise; one of both must hold
};

/// Runs every case in a thread of its own, and says which results are others. One module for all.
void expectResults(const std::vector<Instruction>& table);

/// How many blocks and threads there are; a single number stands for {number, 1, 1}.
struct Shape {
  std::uint32_t threads[3] = {1, 1, 1};
  std::uint32_t blocks[3] = {1, 1, 1};
  std::uint32_t dynamicSharedBytes = 0;
};

/// An image that was read, and its variables. All its kernels that are run take (.u64 inputs, .u64 outputs, .u32
/// count): two arrays of words, and how many threads have something to do.
class Program {
 public:
  /// `bytes` 0: of text, as the contract has it. With SOFTGPU_PTX_KEEP=FOLDER every text that is valid is written
  /// there, for ptxas to judge.
  explicit Program(const void* image, std::size_t bytes = 0, const char* cacheFolder = nullptr,
                   std::optional<std::uint64_t> weakSeed = weakSeedOfAll());
  /// The text of a module without the lines at its head that all of them have.
  static Program of(const std::string& body, std::optional<std::uint64_t> weakSeed = weakSeedOfAll());
  /// SOFTGPU_WEAK_MEMORY=SEED: all programs run in weak memory.
  static std::optional<std::uint64_t> weakSeedOfAll();
  ~Program();
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;

  /// Null if it could not be read.
  const PtxProgram* get() const { return program_; }
  /// Why there is no program, or no code of the kernel asked for last.
  const std::string& why() const { return why_; }
  /// Null if there is none.
  const PtxFunction* function(const std::string& name) const;
  const PtxVariable* variable(const std::string& name) const;
  /// Null, and why(), if it was not translated.
  const simt::HostKernel* kernel(const std::string& name);
  /// Runs a kernel on fresh variables, with a fiber for each thread and, where it can, whole blocks at once, which must
  /// lead to the same. Returns `outputs` words, which begin as kUntouched; none, and a failure, if it did not end well.
  std::vector<std::uint64_t> run(const std::string& name, const Shape& shape, const Words& inputs, std::size_t outputs,
                                 std::uint32_t count = 0);
  /// Like run(), of a kernel that ends with a trap: what it said.
  std::string trapOf(const std::string& name, const Shape& shape, const Words& inputs);
  /// Runs a kernel of any parameters with a fiber for each thread; what it writes is wherever they say.
  void runWith(const std::string& name, const Shape& shape, const void* params, std::size_t bytes);
  /// Of a program in weak memory: which stores are late, and loads early, from now on.
  void reseed(std::uint64_t seed) { weakSeed_ = seed; }
  /// The variables as the last run() left them.
  char* variables() { return place_; }

  static constexpr std::uint64_t kUntouched = 0xc5c5c5c5c5c5c5c5u;

 private:
  /// The parameters of all kernels here.
  struct Params {
    const std::uint64_t* inputs;
    std::uint64_t* outputs;
    std::uint32_t count;
  };
  void freshVariables();
  KernelOperation operationOf(const simt::HostKernel& kernel, const Shape& shape, KernelParams params);
  std::string runBlocks(const KernelOperation& operation);
  void runWholeBlocks(const KernelOperation& operation);

  const PtxProgram* program_ = nullptr;
  std::optional<std::uint64_t> weakSeed_;
  std::string why_;
  std::vector<std::max_align_t> room_;
  char* place_ = nullptr;  ///< of the variables, in room_
};

/// Whether the reason `why` speaks of `what`.
inline bool names(const std::string& why, const std::string& what) {
  return why.find(what) != std::string::npos;
}

/// The directives with which every module begins.
std::string moduleHead();

/// Text of a kernel `name` whose body finds the addresses of its inputs and outputs in %in and %out, the count in
/// %count, the thread's index in its block in %index and in the grid in %thread.
std::string kernelText(const std::string& name, const std::string& body);

/// kernelText() as a module, run with `threads` threads.
std::vector<std::uint64_t> runBody(const std::string& body, std::uint32_t threads, const Words& inputs,
                                   std::size_t outputs, const std::string& before = "");

/// What a thread left in %r and %s.
struct Lane {
  std::uint32_t r, s;
  bool operator==(const Lane&) const = default;
};

/// Runs `body` as one block; it has %r and %s (.u32, which begin as 0), %t0 to %t7 (.u32), %l0 to %l3 (.u64), %p and
/// %q, and its number in %index.
std::vector<Lane> runLanes(const std::string& body, std::uint32_t threads, const std::string& before = "");

}  // namespace tutti::softgpu::test
