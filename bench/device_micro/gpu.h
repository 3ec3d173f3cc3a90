// One GPU by the driver's interface: memory, kernels of this program, and waits that end. Errors are exceptions that
// say which call failed, why, and what helps.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace micro {

/// The fatbin with the kernels, in this program.
const void* embeddedKernels();

/// Throws unless the call succeeded.
void check(CUresult result, const char* call);
#define CU_CHECK(...) ::micro::check((__VA_ARGS__), #__VA_ARGS__)

/// A kernel that did not end: nothing can be released any more.
struct Hang : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Memory of the device, zeroed, or of the host as the device sees it.
class Memory {
 public:
  enum class Place { Device, Host };
  Memory(Place place, std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  template <class T = char>
  T* get(std::size_t byteOffset = 0) const {
    return reinterpret_cast<T*>(address_ + byteOffset);
  }
  /// Of host memory: the host's own address.
  template <class T>
  volatile T* host() const {
    return static_cast<volatile T*>(host_);
  }
  std::size_t bytes() const { return bytes_; }
  void clear() { clear(bytes_); }
  void clear(std::size_t bytes);
  template <class T>
  void write(const std::vector<T>& values, std::size_t byteOffset = 0) {
    copyTo(values.data(), values.size() * sizeof(T), byteOffset);
  }
  /// Repeats the values to the end.
  template <class T>
  void fill(const std::vector<T>& values) {
    write(values);
    repeat(values.size() * sizeof(T));
  }
  template <class T>
  std::vector<T> read(std::size_t count, std::size_t byteOffset = 0) const {
    std::vector<T> values(count);
    copyFrom(values.data(), count * sizeof(T), byteOffset);
    return values;
  }

 private:
  void copyTo(const void* from, std::size_t bytes, std::size_t offset);
  void copyFrom(void* to, std::size_t bytes, std::size_t offset) const;
  void repeat(std::size_t bytes);

  std::size_t bytes_;
  void* host_ = nullptr;
  CUdeviceptr address_ = 0;
};

/// How a kernel is started.
struct Shape {
  unsigned blocks = 1;
  unsigned threads = 1;
  unsigned sharedBytes = 0;
};

class Gpu {
 public:
  /// `patience`: longer than any kernel takes by its own limits.
  Gpu(int ordinal, std::chrono::seconds patience);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  CUfunction kernel(const std::string& name);
  CUstream stream() const { return stream_; }

  /// Runs a kernel to its end and returns the microseconds that events around it say.
  template <class Params>
  double run(const std::string& name, const Shape& shape, const Params& params) {
    return runRaw(name, shape, const_cast<Params*>(&params));
  }
  /// Waits for what the stream has; throws Hang when that takes too long.
  void finish();

  int attribute(CUdevice_attribute which) const;
  const std::string& name() const { return name_; }
  int driver() const { return driver_; }

 private:
  double runRaw(const std::string& name, const Shape& shape, void* params);

  std::chrono::seconds patience_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
  int driver_ = 0;
  std::string name_;
  std::map<std::string, CUfunction> kernels_;
};

}  // namespace micro
