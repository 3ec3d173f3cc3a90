// Weak memory for translated code: what PTX's orders promise holds under every seed, what they do not promise fails
// under some.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

constexpr std::uint64_t kSeeds = 40;
constexpr std::uint32_t kWarp = 32;

/// Thread 0 writes 1 to a word and then says so; thread 32 waits for that, and reads the word. Each has its statements.
struct Message {
  std::string writes = "st.global.u32 [%data], 1;";
  std::string says = "st.relaxed.gpu.global.u32 [%flag], 1;";
  std::string looks = "ld.acquire.gpu.global.u32 %seen, [%flag];";
  std::string reads = "ld.global.u32 %value, [%data];";
};

/// The words begin as 0; %data and %flag lie 256 bytes apart. Threads 0 and 32 store what they find to %out.
std::string textOf(const Message& message) {
  return ".global .align 256 .b32 words[128];\n.shared .align 16 .b32 inBlock[128];\n" +
         kernelText("passes",
                    ".reg .u64 %data, %flag;\n.reg .u32 %seen, %value;\n.reg .pred %p;\n"
                    "mov.u64 %data, words;\nadd.u64 %flag, %data, 256;\n"
                    "setp.eq.u32 %p, %index, 0;\n@%p bra WRITER;\n"
                    "setp.ne.u32 %p, %index, 32;\n@%p bra DONE;\n"
                    "AGAIN:\n" +
                        message.looks + "\nsetp.ne.u32 %p, %seen, 1;\n@%p bra AGAIN;\n" + message.reads +
                        "\nst.global.u32 [%out], %value;\nst.global.u32 [%out+4], 0;\nbra DONE;\nWRITER:\n" +
                        message.writes + "\n" + message.says + "\nDONE:\n");
}

/// What the reader finds, over all seeds.
std::set<std::uint64_t> valuesOf(const Message& message) {
  std::set<std::uint64_t> values;
  Program program = Program::of(textOf(message), 0);
  EXPECT_NE(program.get(), nullptr) << program.why();
  for (std::uint64_t seed = 0; program.get() != nullptr && seed < kSeeds; ++seed) {
    program.reseed(seed);
    for (const std::uint64_t value : program.run("passes", {{2 * kWarp, 1, 1}, {1, 1, 1}, 0}, {}, 1)) {
      values.insert(value);
    }
  }
  return values;
}

const std::set<std::uint64_t> kAlways = {1};
const std::set<std::uint64_t> kEither = {0, 1};

TEST(PtxWeakMemory, AStoreMayBeSeenAfterALaterOne) {
  EXPECT_EQ(valuesOf({}), kEither);
}

TEST(PtxWeakMemory, VolatileStoresMayBeLateAsWell) {
  EXPECT_EQ(valuesOf({.writes = "st.volatile.global.u32 [%data], 1;",
                      .says = "st.volatile.global.u32 [%flag], 1;",
                      .looks = "ld.volatile.global.u32 %seen, [%flag];\nmembar.sys;"}),
            kEither);
}

TEST(PtxWeakMemory, FencesKeepStoresInOrder) {
  for (const char* fence : {"fence.acq_rel.sys;", "fence.sc.gpu;", "fence.acq_rel.cta;", "membar.gl;", "membar.sys;",
                            "membar.cta;", "fence.acq_rel.cluster;"}) {
    EXPECT_EQ(valuesOf({.says = std::string(fence) + "\nst.relaxed.gpu.global.u32 [%flag], 1;"}), kAlways) << fence;
  }
}

TEST(PtxWeakMemory, FencesOfProxiesKeepNothingInOrder) {
  EXPECT_EQ(valuesOf({.says = "fence.proxy.async;\nst.relaxed.gpu.global.u32 [%flag], 1;"}), kEither);
}

TEST(PtxWeakMemory, ReleasesShowWhatWasStoredBefore) {
  for (const char* scope : {"sys", "gpu", "cta"}) {
    for (const char* type : {"b32", "u32"}) {
      const std::string name = std::string(scope) + ".global." + type;
      EXPECT_EQ(
          valuesOf({.says = "st.release." + name + " [%flag], 1;", .looks = "ld.acquire." + name + " %seen, [%flag];"}),
          kAlways)
          << name;
    }
  }
}

/// The writer in order, the reader as `looks` has it.
Message released(const std::string& looks) {
  return {.says = "st.release.sys.global.u32 [%flag], 1;", .looks = looks};
}

TEST(PtxWeakMemory, ALoadMayComeBeforeAnEarlierOne) {
  EXPECT_EQ(valuesOf(released("ld.relaxed.sys.global.u32 %seen, [%flag];")), kEither);
  EXPECT_EQ(valuesOf(released("ld.volatile.global.u32 %seen, [%flag];")), kEither);
  EXPECT_EQ(valuesOf(released("atom.relaxed.sys.global.or.b32 %seen, [%flag], 0;")), kEither);
}

TEST(PtxWeakMemory, AcquiresAndFencesKeepLoadsInOrder) {
  for (const char* looks :
       {"ld.acquire.sys.global.u32 %seen, [%flag];", "ld.acquire.gpu.global.u32 %seen, [%flag];",
        "ld.relaxed.sys.global.u32 %seen, [%flag];\nfence.acq_rel.sys;",
        "ld.volatile.global.u32 %seen, [%flag];\nmembar.gl;", "atom.acquire.sys.global.or.b32 %seen, [%flag], 0;",
        "atom.acq_rel.gpu.global.or.b32 %seen, [%flag], 0;"}) {
    EXPECT_EQ(valuesOf(released(looks)), kAlways) << looks;
  }
}

TEST(PtxWeakMemory, ThatAllLoadsAreStrongDoesNotOrderThem) {
  Message message = released("ld.relaxed.sys.global.u32 %seen, [%flag];");
  for (const char* how : {"ld.relaxed.gpu.global.u32", "ld.volatile.global.u32"}) {
    message.reads = std::string(how) + " %value, [%data];";
    EXPECT_EQ(valuesOf(message), kEither) << how;
  }
}

TEST(PtxWeakMemory, ReleasesDoNotAcquire) {
  for (const char* release : {"red.release.gpu.global.add.u32 [%flag+64], 1;",
                              "st.release.sys.global.u32 [%flag+64], 1;", "st.release.gpu.global.u32 [%flag+64], 1;"}) {
    EXPECT_EQ(valuesOf(released(std::string("ld.relaxed.sys.global.u32 %seen, [%flag];\n") + release)), kEither)
        << release;
  }
}

TEST(PtxWeakMemory, AThreadDoesNotMissItsOwnAtomics) {
  Message message = released("ld.relaxed.sys.global.u32 %seen, [%flag];");
  message.reads = "red.relaxed.gpu.global.add.u32 [%data], 4;\nld.global.u32 %value, [%data];";
  EXPECT_EQ(valuesOf(message), std::set<std::uint64_t>{5});
}

TEST(PtxWeakMemory, AsynchronousCopiesMayReadEarly) {
  Message message = released("ld.relaxed.sys.global.u32 %seen, [%flag];");
  message.reads =
      "cp.async.ca.shared.global [inBlock], [%data], 4;\ncp.async.wait_all;\nld.shared.u32 %value, [inBlock];";
  EXPECT_EQ(valuesOf(message), kEither);
  message.looks = "ld.acquire.sys.global.u32 %seen, [%flag];";
  EXPECT_EQ(valuesOf(message), kAlways);
}

TEST(PtxWeakMemory, AtomicsAreAtOnceAndOrderOnlyWhatTheySay) {
  EXPECT_EQ(valuesOf({.says = "red.relaxed.gpu.global.add.u32 [%flag], 1;"}), kEither);
  EXPECT_EQ(valuesOf({.says = "red.release.gpu.global.add.u32 [%flag], 1;"}), kAlways);
  EXPECT_EQ(valuesOf({.says = "atom.acq_rel.sys.global.exch.b32 %value, [%flag], 1;"}), kAlways);
  EXPECT_EQ(valuesOf({.says = "atom.global.cas.b32 %value, [%flag], 0, 1;"}), kEither);
}

TEST(PtxWeakMemory, AtomicsComeAfterTheThreadsOwnStores) {
  EXPECT_EQ(valuesOf({.writes = "st.global.u32 [%data], 5;\nred.global.add.u32 [%data], 3;",
                      .says = "fence.acq_rel.gpu;\nst.relaxed.gpu.global.u32 [%flag], 1;"}),
            std::set<std::uint64_t>{8});
}

TEST(PtxWeakMemory, SharedMemoryIsNoStronger) {
  Message message = {.writes = "st.shared.u32 [inBlock], 1;",
                     .says = "st.volatile.shared.u32 [inBlock+256], 1;",
                     .looks = "ld.volatile.shared.u32 %seen, [inBlock+256];\nfence.acq_rel.cta;",
                     .reads = "ld.shared.u32 %value, [inBlock];"};
  const auto values = valuesOf(message);
  EXPECT_EQ(values.count(1), 1u);
  EXPECT_EQ(values.size(), 2u) << "what is in shared memory at first is not known, and not 1";
  message.says = "fence.acq_rel.cta;\n" + message.says;
  EXPECT_EQ(valuesOf(message), kAlways);
  message.looks = "ld.volatile.shared.u32 %seen, [inBlock+256];";
  EXPECT_GT(valuesOf(message).size(), 1u) << "its reader has no fence";
}

TEST(PtxWeakMemory, BarriersPassOnWhatTheirThreadsStored) {
  Program program =
      Program::of(".global .b32 words[64];\n" + kernelText("meets",
                                                           ".reg .u64 %a, %b;\n.reg .u32 %v, %other;\n"
                                                           "mul.wide.u32 %a, %index, 4;\nmov.u64 %b, words;\n"
                                                           "add.u64 %b, %b, %a;\nst.global.u32 [%b], %index;\n"
                                                           "bar.sync 0;\nxor.b32 %other, %index, 63;\n"
                                                           "mul.wide.u32 %a, %other, 4;\nmov.u64 %b, words;\n"
                                                           "add.u64 %b, %b, %a;\nld.global.u32 %v, [%b];\n"
                                                           "mul.wide.u32 %a, %index, 8;\nadd.u64 %a, %out, %a;\n"
                                                           "cvt.u64.u32 %b, %v;\nst.global.u64 [%a], %b;"),
                  0);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    program.reseed(seed);
    const auto values = program.run("meets", {{2 * kWarp, 1, 1}, {1, 1, 1}, 0}, {}, 64);
    ASSERT_EQ(values.size(), 64u) << program.why();
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], 63 - i) << "seed " << seed;
  }
}

/// Thread 0 releases a word, thread 32 looks for that and meets its warp and the next one by `meets`, thread 64 reads.
std::set<std::uint64_t> valuesBeside(const std::string& looks, const std::string& meets) {
  Program program =
      Program::of(".global .align 256 .b32 words[128];\n" +
                      kernelText("beside",
                                 ".reg .u64 %data, %flag;\n.reg .u32 %seen, %value;\n.reg .pred %p, %q;\n"
                                 "mov.u64 %data, words;\nadd.u64 %flag, %data, 256;\n"
                                 "setp.ge.u32 %p, %index, 32;\n@%p bra OTHERS;\n"
                                 "setp.ne.u32 %p, %index, 0;\n@%p bra DONE;\n"
                                 "st.global.u32 [%data], 1;\nst.release.gpu.global.u32 [%flag], 1;\nbra DONE;\n"
                                 "OTHERS:\nsetp.ne.u32 %p, %index, 32;\n@%p bra MEET;\n"
                                 "AGAIN:\n" +
                                     looks + "\nsetp.ne.u32 %p, %seen, 1;\n@%p bra AGAIN;\nMEET:\n" + meets +
                                     "\nsetp.ne.u32 %p, %index, 64;\n@%p bra DONE;\n"
                                     "ld.global.u32 %value, [%data];\nst.global.u32 [%out], %value;\n"
                                     "st.global.u32 [%out+4], 0;\nDONE:\n"),
                  0);
  EXPECT_NE(program.get(), nullptr) << program.why();
  std::set<std::uint64_t> values;
  for (std::uint64_t seed = 0; program.get() != nullptr && seed < kSeeds; ++seed) {
    program.reseed(seed);
    for (const std::uint64_t value : program.run("beside", {{3 * kWarp, 1, 1}, {1, 1, 1}, 0}, {}, 1)) {
      values.insert(value);
    }
  }
  return values;
}

TEST(PtxWeakMemory, BarriersPassOnWhatAThreadHasAcquired) {
  const std::string acquires = "ld.acquire.gpu.global.u32 %seen, [%flag];";
  for (const char* barrier : {"bar.sync 1, 64;", "barrier.cta.sync.aligned 1, 64;", "barrier.cta.sync 1, 64;",
                              "setp.eq.u32 %p, %index, 32;\nbar.red.popc.u32 %value, 1, 64, %p;",
                              "setp.eq.u32 %p, %index, 32;\nbarrier.cta.red.or.pred %q, 1, 64, %p;"}) {
    EXPECT_EQ(valuesBeside(acquires, barrier), kAlways) << barrier;
  }
  EXPECT_EQ(valuesBeside("ld.relaxed.gpu.global.u32 %seen, [%flag];", "bar.sync 1, 64;"), kEither);
}

TEST(PtxWeakMemory, BulkCopiesAreDoneWhenTheBlockEnds) {
  Program program = Program::of(
      ".shared .align 16 .b64 words[2];\n" +
          kernelText("leaves",
                     "st.shared.u64 [words], 7;\nst.shared.u64 [words+8], 9;\nfence.proxy.async.shared::cta;\n"
                     "cp.async.bulk.global.shared::cta.bulk_group [%out], [words], 16;\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;"),
      0);
  ASSERT_NE(program.get(), nullptr) << program.why();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    program.reseed(seed);
    EXPECT_EQ(program.run("leaves", {{1, 1, 1}, {1, 1, 1}, 0}, {}, 2), (std::vector<std::uint64_t>{7, 9})) << seed;
  }
}

TEST(PtxWeakMemory, AVectorOfSixteenBytesIsSeenWhole) {
  EXPECT_EQ(valuesOf({.writes = "",
                      .says = "st.volatile.global.v4.u32 [%flag], {1, 1, 1, 1};",
                      .looks = "ld.volatile.global.u32 %seen, [%flag+12];",
                      .reads = "ld.volatile.global.u32 %value, [%flag];"}),
            kAlways);
  EXPECT_EQ(valuesOf({.writes = "st.volatile.global.v2.u32 [%flag], {1, 1};",
                      .says = "st.volatile.global.v2.u32 [%flag+16], {1, 1};",
                      .looks = "ld.volatile.global.u32 %seen, [%flag+20];",
                      .reads = "ld.volatile.global.u32 %value, [%flag];"}),
            kEither);
}

/// Eight lanes store a line whose last words are its flag: what a reader that has seen the flag finds at its begin.
/// `asks`: only if the warp is together with one instruction, else the last part after the others.
std::set<std::uint64_t> lineSeen(bool asks) {
  const std::string apart =
      "activemask.b32 %mask;\nsetp.ne.u32 %p, %mask, 0xffffffff;\n@%p bra APART;\n"
      "@%writes st.volatile.global.v2.u64 [%at], {1, 1};\nbra DONE;\n"
      "APART:\nsetp.lt.u32 %p, %index, 7;\n@%p st.volatile.global.v2.u64 [%at], {1, 1};\n"
      "fence.acq_rel.sys;\nbar.warp.sync 0xffffffff;\nsetp.eq.u32 %p, %index, 7;\n"
      "@%p st.volatile.global.v2.u64 [%at], {1, 1};\nbra DONE;\n";
  const std::string blindly =
      "bar.warp.sync 0xffffffff;\n@%writes st.volatile.global.v2.u64 [%at], {1, 1};\nbra DONE;\n";
  Program program = Program::of(
      ".global .align 256 .b32 words[128];\n" +
          kernelText("passes",
                     ".reg .u64 %flag, %at;\n.reg .u32 %seen, %value, %mask;\n.reg .pred %p, %writes;\n"
                     "mov.u64 %flag, words;\nsetp.ge.u32 %p, %index, 32;\n@%p bra READER;\n"
                     "mul.wide.u32 %at, %index, 16;\nadd.u64 %at, %flag, %at;\n"
                     "setp.lt.u32 %writes, %index, 8;\n" +
                         (asks ? apart : blindly) +
                         "READER:\nsetp.ne.u32 %p, %index, 32;\n@%p bra DONE;\n"
                         "AGAIN:\nld.volatile.global.u32 %seen, [%flag+120];\n"
                         "setp.ne.u32 %p, %seen, 1;\n@%p bra AGAIN;\n"
                         "membar.sys;\nld.volatile.global.u32 %value, [%flag];\nst.global.u32 [%out], %value;\n"
                         "st.global.u32 [%out+4], 0;\nDONE:\n"),
      0);
  EXPECT_NE(program.get(), nullptr) << program.why();
  std::set<std::uint64_t> values;
  for (std::uint64_t seed = 0; program.get() != nullptr && seed < kSeeds; ++seed) {
    program.reseed(seed);
    for (const std::uint64_t value : program.run("passes", {{2 * kWarp, 1, 1}, {1, 1, 1}, 0}, {}, 1)) {
      values.insert(value);
    }
  }
  return values;
}

TEST(PtxWeakMemory, ALineIsWholeForLanesThatHaveSeenThatTheyAreTogether) {
  EXPECT_EQ(lineSeen(true), kAlways);
}

TEST(PtxWeakMemory, ALineIsInPartsAfterABarrierOfTheWarpAlone) {
  EXPECT_EQ(lineSeen(false), kEither);
}

TEST(PtxWeakMemory, AsynchronousCopiesMustBeWaitedFor) {
  const std::string copy =
      "st.global.u32 [%data], 1;\nfence.acq_rel.gpu;\n"
      "cp.async.ca.shared.global [inBlock], [%data], 4;\ncp.async.commit_group;\n";
  EXPECT_EQ(valuesOf({.writes = copy + "cp.async.wait_group 0;",
                      .says = "st.release.cta.shared.u32 [inBlock+256], 1;",
                      .looks = "ld.acquire.cta.shared.u32 %seen, [inBlock+256];",
                      .reads = "ld.shared.u32 %value, [inBlock];"}),
            kAlways);
  EXPECT_NE(valuesOf({.writes = copy,
                      .says = "fence.acq_rel.gpu;\nst.release.cta.shared.u32 [inBlock+256], 1;",
                      .looks = "ld.acquire.cta.shared.u32 %seen, [inBlock+256];",
                      .reads = "ld.shared.u32 %value, [inBlock];"}),
            kAlways)
      << "nobody waits for the copy";
}

/// What a single thread that runs `body` says as it traps.
std::string trapOf(const std::string& body) {
  Program program = Program::of(".global .align 16 .b32 words[64];\n.shared .align 16 .b32 inBlock[64];\n" +
                                    kernelText("wrong", ".reg .u64 %a;\n.reg .u32 %v<4>;\n" + body),
                                0);
  return program.trapOf("wrong", {}, {});
}

TEST(PtxWeakMemory, AccessesThatAreNotAlignedTrapAndAreNamed) {
  const std::string why = trapOf("mov.u64 %a, words;\nld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%a+4];");
  EXPECT_NE(why.find("ld.global.v4.u32"), std::string::npos) << why;
  EXPECT_NE(why.find("no multiple of 16"), std::string::npos) << why;
  EXPECT_NE(trapOf("mov.u64 %a, words;\nst.global.u64 [%a+4], %a;").find("no multiple of 8"), std::string::npos);
  EXPECT_NE(trapOf("mov.u64 %a, words;\nred.global.add.u32 [%a+2], 1;").find("no multiple of 4"), std::string::npos);
}

TEST(PtxWeakMemory, GlobalAccessesToSharedMemoryTrapAndAreNamed) {
  const std::string why = trapOf("cvta.shared.u64 %a, inBlock;\nld.global.u32 %v0, [%a];");
  EXPECT_NE(why.find("shared memory"), std::string::npos) << why;
  EXPECT_NE(why.find("ld.global.u32"), std::string::npos) << why;
}

TEST(PtxWeakMemory, StoresNearNullTrapAtOnce) {
  const std::string why = trapOf("mov.u64 %a, 16;\nst.u32 [%a], 1;");
  EXPECT_NE(why.find("so low an address"), std::string::npos) << why;
}

}  // namespace
}  // namespace tutti::softgpu::test
