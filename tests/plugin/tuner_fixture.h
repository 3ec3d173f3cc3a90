// What tests of tuners share: the test tuners by version, what they have recorded, and their rules.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "plugin/test_tuner.h"

namespace tutti::test {

inline std::string tunerPath(int version) {
  const char* folder = std::getenv("TUTTI_TEST_PLUGINS");
  return std::string(folder != nullptr ? folder : ".") + "/libnccl-tuner-testv" + std::to_string(version) + ".so";
}

/// Whether it is loaded.
inline bool tunerIsLoaded(int version) {
  void* const library = ::dlopen(tunerPath(version).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) ::dlclose(library);
  return library != nullptr;
}

/// What a loaded test tuner has recorded since it was loaded; all 0 where it is not.
inline TestTunerRecord recordOf(int version) {
  void* const library = ::dlopen(tunerPath(version).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return {};
  auto* const function = reinterpret_cast<TestTunerRecordFunction*>(::dlsym(library, "testTunerRecord"));
  const TestTunerRecord record = function();
  ::dlclose(library);
  return record;
}

/// Rules for test tuners that begin while it lives.
class TunerRules {
 public:
  explicit TunerRules(const std::string& rules) { ::setenv("TEST_TUNER", rules.c_str(), 1); }
  TunerRules(const TunerRules&) = delete;
  ~TunerRules() { ::unsetenv("TEST_TUNER"); }
};

}  // namespace tutti::test
