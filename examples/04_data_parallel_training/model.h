// A small classifier (64 inputs, one hidden layer, 10 classes) whose gradients the example reduces over processes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace training {

inline constexpr std::size_t kInputs = 64;
inline constexpr std::size_t kHidden = 32;
inline constexpr std::size_t kClasses = 10;

/// Images of digits, pixels scaled to 0..1.
struct DataSet {
  std::vector<float> pixels;  ///< size() * kInputs
  std::vector<int> labels;
  std::size_t size() const { return labels.size(); }
  std::span<const float> image(std::size_t i) const { return {pixels.data() + i * kInputs, kInputs}; }
};

/// Reads the comma separated file of examples/data; ends the program with a message if it cannot.
DataSet loadDigits(const std::string& path);

/// All weights in one vector, so that one all-reduce carries all gradients.
class Model {
 public:
  /// Same weights for the same seed, in every process.
  explicit Model(unsigned seed);

  /// Adds the gradient of the loss over samples [first, last) to `gradient` and returns the sum of their losses.
  double addGradient(const DataSet& data, std::size_t first, std::size_t last, std::span<float> gradient) const;
  /// Plain stochastic gradient descent.
  void step(std::span<const float> gradient, float rate);
  /// Share of samples [first, last) whose most likely class is the label.
  double accuracy(const DataSet& data, std::size_t first, std::size_t last) const;

  static std::size_t parameterCount() { return kInputs * kHidden + kHidden + kHidden * kClasses + kClasses; }
  std::span<const float> weights() const { return weights_; }

 private:
  void forward(std::span<const float> image, float* hidden, float* probability) const;
  std::vector<float> weights_;  ///< first layer, its bias, second layer, its bias
};

}  // namespace training
