// Runs twice: with hwloc, and with TUTTI_HWLOC=0 by system calls. Both do the same.
#include "base/hwloc/binding.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/cpu_set.h"

namespace tutti {
namespace {

constexpr std::size_t kBytes = 64 << 10;
constexpr int kPreferredMany = 5;  ///< MPOL_PREFERRED_MANY, which older headers lack

/// Runs it on a thread of its own, so that this one stays where it is.
template <class F>
void onAThread(const F& test) {
  std::thread(test).join();
}

int firstOf(const cpu_set_t& set) {
  int cpu = 0;
  while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &set)) ++cpu;
  return cpu;
}

struct Pages {
  void* address = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  Pages() = default;
  Pages(const Pages&) = delete;
  ~Pages() { ::munmap(address, kBytes); }

  /// The policy of its pages and the nodes it names; -1: cannot be asked.
  std::pair<int, unsigned long> policy() const {
    int mode = -1;
    std::array<unsigned long, 16> nodes{};
    const long asked = ::syscall(SYS_get_mempolicy, &mode, nodes.data(), nodes.size() * 64, address, MPOL_F_ADDR);
    return {asked == 0 ? mode : -1, nodes[0]};
  }
};

TEST(Binding, KeepsAThreadOnOneProcessor) {
  onAThread([] {
    const int cpu = firstOf(ownProcessors().value());
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(bindThread(one), 0);
    const cpu_set_t now = ownProcessors().value();
    EXPECT_TRUE(CPU_EQUAL(&now, &one)) << cpuListText(now);
  });
}

TEST(Binding, DoesNotCountProcessorsThatTheMachineLacks) {
  onAThread([] {
    const cpu_set_t before = ownProcessors().value();
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) CPU_SET(cpu, &all);
    ASSERT_EQ(bindThread(all), 0);
    const cpu_set_t now = ownProcessors().value();
    const cpu_set_t both = now & before;
    EXPECT_TRUE(CPU_EQUAL(&both, &before)) << cpuListText(now);
  });
}

TEST(Binding, SaysThatNoProcessorIsLeft) {
  onAThread([] {
    cpu_set_t none;
    CPU_ZERO(&none);
    EXPECT_EQ(bindThread(none), EINVAL);
    cpu_set_t last;
    CPU_ZERO(&last);
    CPU_SET(CPU_SETSIZE - 1, &last);
    const cpu_set_t own = ownProcessors().value();
    if (CPU_ISSET(CPU_SETSIZE - 1, &own)) return;
    EXPECT_EQ(bindThread(last), EINVAL);
  });
}

TEST(Binding, PrefersANodeForMemory) {
  if (!std::filesystem::exists("/sys/devices/system/node/node0")) GTEST_SKIP() << "the system shows no NUMA nodes";
  const Pages pages;
  if (pages.policy().first < 0) GTEST_SKIP() << "the system does not tell where memory lies";
  EXPECT_EQ(pages.policy().first, MPOL_DEFAULT);
  const BindingScope scope;
  if (!preferNode(pages.address, kBytes, 0)) GTEST_SKIP() << "the system does not allow it";
  const auto [mode, nodes] = pages.policy();
  EXPECT_TRUE(mode == MPOL_PREFERRED || mode == kPreferredMany) << mode;
  EXPECT_EQ(nodes, 1u);
}

TEST(Binding, LeavesMemoryAloneWhereTheNodeIsUnknown) {
  const Pages pages;
  EXPECT_FALSE(preferNode(pages.address, kBytes, -1));
  EXPECT_FALSE(preferNode(pages.address, kBytes, 1000));
  EXPECT_FALSE(preferNode(pages.address, kBytes, 100000));
  EXPECT_TRUE(pages.policy().first <= MPOL_DEFAULT);
}

TEST(Binding, SharesAViewInAScopeAmongThreads) {
  const BindingScope outer;
  std::vector<std::thread> threads;
  std::atomic<int> bound = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const BindingScope inner;
      bound += bindThread(ownProcessors().value()) == 0 ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(bound, 8);
}

}  // namespace
}  // namespace tutti
