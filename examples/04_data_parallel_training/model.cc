#include "model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

namespace training {
namespace {

constexpr std::size_t kBias1 = kInputs * kHidden;
constexpr std::size_t kLayer2 = kBias1 + kHidden;
constexpr std::size_t kBias2 = kLayer2 + kHidden * kClasses;

}  // namespace

DataSet loadDigits(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    std::exit(2);
  }
  DataSet data;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::vector<float> values;
    for (std::string field; std::getline(fields, field, ',');) values.push_back(std::stof(field));
    if (values.size() != kInputs + 1) {
      std::fprintf(stderr, "%s: line %zu has %zu fields, not 65\n", path.c_str(), data.size() + 1, values.size());
      std::exit(2);
    }
    for (std::size_t i = 0; i < kInputs; ++i) data.pixels.push_back(values[i] / 16);
    data.labels.push_back(static_cast<int>(values[kInputs]));
  }
  return data;
}

Model::Model(unsigned seed) : weights_(parameterCount(), 0.0f) {
  std::mt19937 random(seed);
  const auto uniform = [&random](float range) {
    return (static_cast<float>(random()) / 4294967296.0f * 2 - 1) * range;
  };
  for (std::size_t i = 0; i < kBias1; ++i) weights_[i] = uniform(0.2f);
  for (std::size_t i = kLayer2; i < kBias2; ++i) weights_[i] = uniform(0.3f);
}

void Model::forward(std::span<const float> image, float* hidden, float* probability) const {
  for (std::size_t h = 0; h < kHidden; ++h) {
    float sum = weights_[kBias1 + h];
    for (std::size_t i = 0; i < kInputs; ++i) sum += weights_[h * kInputs + i] * image[i];
    hidden[h] = std::tanh(sum);
  }
  float largest = -INFINITY;
  for (std::size_t c = 0; c < kClasses; ++c) {
    float sum = weights_[kBias2 + c];
    for (std::size_t h = 0; h < kHidden; ++h) sum += weights_[kLayer2 + c * kHidden + h] * hidden[h];
    probability[c] = sum;
    largest = std::max(largest, sum);
  }
  float total = 0;
  for (std::size_t c = 0; c < kClasses; ++c) total += probability[c] = std::exp(probability[c] - largest);
  for (std::size_t c = 0; c < kClasses; ++c) probability[c] /= total;
}

double Model::addGradient(const DataSet& data, std::size_t first, std::size_t last, std::span<float> gradient) const {
  double loss = 0;
  for (std::size_t s = first; s < last; ++s) {
    const auto image = data.image(s);
    const auto label = static_cast<std::size_t>(data.labels[s]);
    float hidden[kHidden];
    float error[kClasses];
    forward(image, hidden, error);
    loss -= std::log(std::max(error[label], 1e-30f));
    error[label] -= 1;  // softmax and cross entropy: the derivative is probability minus truth
    float back[kHidden] = {};
    for (std::size_t c = 0; c < kClasses; ++c) {
      gradient[kBias2 + c] += error[c];
      for (std::size_t h = 0; h < kHidden; ++h) {
        gradient[kLayer2 + c * kHidden + h] += error[c] * hidden[h];
        back[h] += error[c] * weights_[kLayer2 + c * kHidden + h];
      }
    }
    for (std::size_t h = 0; h < kHidden; ++h) {
      const float slope = back[h] * (1 - hidden[h] * hidden[h]);
      gradient[kBias1 + h] += slope;
      for (std::size_t i = 0; i < kInputs; ++i) gradient[h * kInputs + i] += slope * image[i];
    }
  }
  return loss;
}

void Model::step(std::span<const float> gradient, float rate) {
  for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] -= rate * gradient[i];
}

double Model::accuracy(const DataSet& data, std::size_t first, std::size_t last) const {
  std::size_t right = 0;
  for (std::size_t s = first; s < last; ++s) {
    float hidden[kHidden];
    float probability[kClasses];
    forward(data.image(s), hidden, probability);
    const auto best = std::max_element(probability, probability + kClasses) - probability;
    right += best == data.labels[s] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(last - first);
}

}  // namespace training
