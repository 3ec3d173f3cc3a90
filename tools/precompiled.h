// What most sources include, compiled once by tools/precompile. Only some builds have it, so no source relies on it:
// tests/lint/includes.py knows the names.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#ifdef GTEST_HAS_PTHREAD
#include <gtest/gtest.h>
#endif
