// A profiler plugin of the tests, seen from the test: what the library has told it.
#pragma once

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "plugin/test_profiler.h"

namespace tutti::test {

/// What stands in a record of a collective or message for the members that no plugin of `version` is told of, though
/// its descriptor has them: they are 0, as NCCL leaves them.
inline std::string leftOut(int version, bool collective) {
  if (version > 3) return "";
  std::string text = " name=NULL hash=0";
  if (collective && version <= 2) text += " traffic=0";
  if (collective && version == 1) text += " op=0 collnet=0 nvls=0";
  return text;
}

/// Keeps the plugin's library in memory, so that what it remembers stays. `file`: a path.
class RecordedProfiler {
 public:
  using Record = TestProfilerRecord;

  explicit RecordedProfiler(const std::string& file) : library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  RecordedProfiler(const RecordedProfiler&) = delete;
  RecordedProfiler& operator=(const RecordedProfiler&) = delete;
  ~RecordedProfiler() {
    if (library_ != nullptr) ::dlclose(library_);
  }
  bool loaded() const { return library_ != nullptr; }

  void reset(int mask) const { function<TestProfilerReset_fn>("testProfilerReset")(mask); }
  void fail(int initCode, bool silent, bool bare) const {
    function<TestProfilerFail_fn>("testProfilerFail")(initCode, silent ? 1 : 0, bare ? 1 : 0);
  }
  std::vector<Record> records() const {
    std::vector<Record> all(20000);
    const int n = function<TestProfilerRead_fn>("testProfilerRead")(all.data(), static_cast<int>(all.size()));
    all.resize(static_cast<std::size_t>(n));
    return all;
  }
  /// Those of one kind of call, and of one type of event or state; -1: any.
  std::vector<Record> records(const std::string& call, long type = -1) const {
    std::vector<Record> some = records();
    std::erase_if(some, [&](const Record& one) { return one.call != call || (type >= 0 && one.type != type); });
    return some;
  }

 private:
  template <class F>
  F* function(const char* name) const {
    return reinterpret_cast<F*>(::dlsym(library_, name));
  }
  void* library_;
};

}  // namespace tutti::test
