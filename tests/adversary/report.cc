#include "report.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tutti::adversary {

namespace {

constexpr std::size_t kMostText = 3000;
int out = 1;

}  // namespace

void reportTo(int descriptor) {
  out = descriptor;
}

int reportDescriptor() {
  return out;
}

long microsecondsNow() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

void report(int rank, std::string_view event, std::string_view text) {
  const long now = microsecondsNow();
  char head[64];
  std::snprintf(head, sizeof head, "%ld.%06ld %d ", now / 1000000, now % 1000000, rank);
  std::string line = head;
  line += event;
  line += ' ';
  line += text.substr(0, kMostText);
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  // Who reads has perhaps gone; there is nobody else to tell.
  [[maybe_unused]] const ssize_t written = ::write(out, line.data(), line.size());
}

}  // namespace tutti::adversary
