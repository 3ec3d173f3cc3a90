#include "support/thread_stacks.h"

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/core.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>
#include <vector>

namespace tutti::test {

namespace {

constexpr int kMostFrames = 64;

std::array<void*, kMostFrames> frames;
int frameCount = 0;
std::atomic<int> asked;  // the thread whose frames these are to be
sem_t answered;

int ownId() {
  return static_cast<int>(::syscall(SYS_gettid));
}

void answer(int /*signal*/) {
  if (asked.load() != ownId()) return;  // too late: it was given up
  frameCount = ::backtrace(frames.data(), kMostFrames);
  ::sem_post(&answered);
}

std::vector<int> threadIds() {
  std::vector<int> ids;
  DIR* const folder = ::opendir("/proc/self/task");
  if (folder == nullptr) return ids;
  while (const dirent* const entry = ::readdir(folder)) {
    if (const int id = std::atoi(entry->d_name); id > 0) ids.push_back(id);
  }
  ::closedir(folder);
  return ids;
}

/// The frames of one thread; none: it does not answer.
std::vector<void*> stackOf(int thread) {
  asked = thread;
  if (thread == ownId()) {
    answer(0);
    ::sem_trywait(&answered);
  } else {
    if (::syscall(SYS_tgkill, ::getpid(), thread, SIGURG) != 0) return {};
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    ++until.tv_sec;
    if (::sem_timedwait(&answered, &until) != 0) return {};
  }
  return std::vector<void*>(frames.begin(), frames.begin() + frameCount);
}

/// A place in a file that was loaded.
struct Place {
  std::string file;
  std::uintptr_t offset = 0;
};

Place placeOf(void* address) {
  Dl_info found{};
  if (::dladdr(address, &found) == 0 || found.dli_fname == nullptr) return {};
  // One back: a frame holds where its call returns to, which may lie in the next function.
  const auto offset = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(found.dli_fbase) - 1;
  return {found.dli_fname, offset};
}

/// What addr2line calls these places of one file, in their order; fewer where it does not run.
std::vector<std::string> namesOf(const std::string& file, const std::vector<std::uintptr_t>& offsets) {
  std::string command = fmt::format("addr2line -C -f -p -s -e '{}'", file);
  for (const std::uintptr_t offset : offsets) command += fmt::format(" {:#x}", offset);
  std::vector<std::string> names;
  std::FILE* const out = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (out == nullptr) return names;
  char line[4096];
  while (std::fgets(line, sizeof(line), out) != nullptr) {
    names.emplace_back(line);
    while (!names.back().empty() && names.back().back() == '\n') names.back().pop_back();
  }
  ::pclose(out);
  return names;
}

}  // namespace

void writeThreadStacks() {
  ::sem_init(&answered, 0, 0);
  struct sigaction action {};
  action.sa_handler = answer;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGURG, &action, nullptr);

  std::map<int, std::vector<Place>> stacks;
  std::map<std::string, std::map<std::uintptr_t, std::string>> names;
  for (const int thread : threadIds()) {
    for (void* const address : stackOf(thread)) {
      const Place& place = stacks[thread].emplace_back(placeOf(address));
      names[place.file].emplace(place.offset, std::string(1, '?'));
    }
  }
  for (auto& [file, ofFile] : names) {
    if (file.empty()) continue;
    std::vector<std::uintptr_t> offsets;
    for (const auto& [offset, name] : ofFile) offsets.push_back(offset);
    const std::vector<std::string> found = namesOf(file, offsets);
    for (std::size_t i = 0; i < found.size() && i < offsets.size(); ++i) ofFile[offsets[i]] = found[i];
  }
  for (const auto& [thread, places] : stacks) {
    std::fprintf(stderr, "thread %d:\n", thread);
    for (const Place& place : places) {
      std::fprintf(stderr, "  %s (%s+%#zx)\n", names[place.file][place.offset].c_str(), place.file.c_str(),
                   static_cast<std::size_t>(place.offset));
    }
  }
}

}  // namespace tutti::test
