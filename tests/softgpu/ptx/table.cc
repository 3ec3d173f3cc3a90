// Tables of instructions: a kernel for each, a thread for each case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "softgpu/ptx/run.h"

namespace tutti::softgpu::test {
namespace {

constexpr const char* kOperandNames[] = {"%a", "%b", "%c", "%f"};
constexpr const char* kResultNames[] = {"%d", "%e", "%g", "%h"};
constexpr std::uint32_t kBlock = 32;

struct Types {
  std::vector<std::string> results, operands;
};

Types typesOf(const std::string& text) {
  Types types;
  std::istringstream words(text);
  std::vector<std::string>* list = &types.results;
  for (std::string word; words >> word;) {
    if (word == "=") {
      list = &types.operands;
    } else {
      list->push_back(word);
    }
  }
  EXPECT_LE(types.results.size(), std::size(kResultNames)) << text;
  EXPECT_LE(types.operands.size(), std::size(kOperandNames)) << text;
  return types;
}

int bitsOf(const std::string& type) {
  return type == "pred" ? 1 : std::stoi(type.substr(type.find_first_of("0123456789")));
}

/// Memory has no predicates and no f16.
std::string inMemory(const std::string& type) {
  if (type == "pred") return "u32";
  return type == "f16" || type == "bf16" ? "b16" : type;
}

std::string inRegister(const std::string& type) {
  return type == "bf16" ? "b16" : type;
}

std::string kernelOf(const Instruction& instruction, const Types& types, const std::string& name) {
  std::ostringstream body;
  for (std::size_t i = 0; i < types.operands.size(); ++i)
    body << ".reg ." << inRegister(types.operands[i]) << " " << kOperandNames[i] << ";\n";
  for (std::size_t i = 0; i < types.results.size(); ++i)
    body << ".reg ." << inRegister(types.results[i]) << " " << kResultNames[i] << ";\n";
  body << ".reg .u64 %offset;\n.reg .u32 %word;\n.reg .pred %surplus;\n"
       << "setp.ge.u32 %surplus, %thread, %count;\n@%surplus ret;\n"
       << "mul.wide.u32 %offset, %thread, " << 8 * types.operands.size() << ";\nadd.u64 %in, %in, %offset;\n"
       << "mul.wide.u32 %offset, %thread, " << 8 * types.results.size() << ";\nadd.u64 %out, %out, %offset;\n";
  for (std::size_t i = 0; i < types.operands.size(); ++i) {
    const bool predicate = types.operands[i] == "pred";
    body << "ld.global." << inMemory(types.operands[i]) << " " << (predicate ? "%word" : kOperandNames[i]) << ", [%in+"
         << 8 * i << "];\n";
    if (predicate) body << "setp.ne.u32 " << kOperandNames[i] << ", %word, 0;\n";
  }
  body << instruction.code << "\n";
  for (std::size_t i = 0; i < types.results.size(); ++i) {
    const bool predicate = types.results[i] == "pred";
    if (predicate) body << "selp.u32 %word, 1, 0, " << kResultNames[i] << ";\n";
    body << "st.global." << inMemory(types.results[i]) << " [%out+" << 8 * i << "], "
         << (predicate ? "%word" : kResultNames[i]) << ";\n";
  }
  return kernelText(name, body.str());
}

double numberOf(std::uint64_t bits, const std::string& type) {
  return type == "f64" ? std::bit_cast<double>(bits)
                       : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

bool isNan(std::uint64_t bits, const std::string& type) {
  if (type == "f16") return (bits & 0x7fff) > 0x7c00;
  if (type == "bf16") return (bits & 0x7fff) > 0x7f80;
  return (type == "f32" || type == "f64") && std::isnan(numberOf(bits, type));
}

bool matches(std::uint64_t got, std::uint64_t expected, const std::string& type, const Instruction& instruction) {
  const int width = bitsOf(type);
  const std::uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1;
  if (type == "pred") return got << 32 >> 32 == (expected != 0 ? 1 : 0);
  got &= mask;
  expected &= mask;
  if (got == expected || (isNan(got, type) && isNan(expected, type))) return true;
  if (instruction.relative == 0 && instruction.absolute == 0) return false;
  const double is = numberOf(got, type), should = numberOf(expected, type);
  if (!std::isfinite(is) || !std::isfinite(should)) return false;
  const double error = std::fabs(is - should);
  return error <= instruction.absolute || error <= instruction.relative * std::fabs(should);
}

std::string shown(const std::uint64_t* words, const std::vector<std::string>& types) {
  std::ostringstream text;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const int width = bitsOf(types[i]);
    text << (i == 0 ? "" : ", ") << std::hex << "0x"
         << (width >= 64 ? words[i] : words[i] & ((1ull << std::max(width, 16)) - 1));
    if (types[i] == "f32" || types[i] == "f64") text << " (" << numberOf(words[i], types[i]) << ")";
  }
  return text.str();
}

void checkInstruction(Program& program, const Instruction& instruction, const std::string& name) {
  constexpr int kMostShown = 3;
  const Types types = typesOf(instruction.types);
  Words inputs;
  for (const Case& row : instruction.cases) {
    ASSERT_EQ(row.operands.size(), types.operands.size()) << instruction.code;
    ASSERT_EQ(row.results.size(), types.results.size()) << instruction.code;
    inputs.insert(inputs.end(), row.operands.begin(), row.operands.end());
  }
  const auto count = static_cast<std::uint32_t>(instruction.cases.size());
  const std::size_t perCase = types.results.size();
  const auto results =
      program.run(name, {{kBlock, 1, 1}, {(count + kBlock - 1) / kBlock, 1, 1}, 0}, inputs, count * perCase, count);
  if (results.empty()) {
    ADD_FAILURE() << instruction.code << " did not run";
    return;
  }
  int wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Case& row = instruction.cases[i];
    bool right = true;
    for (std::size_t j = 0; j < perCase; ++j)
      right = right && matches(results[i * perCase + j], row.results[j].bits, types.results[j], instruction);
    if (right || ++wrong > kMostShown) continue;
    ADD_FAILURE() << instruction.code << " of " << shown(&row.operands.data()->bits, types.operands) << " gave "
                  << shown(&results[i * perCase], types.results) << " instead of "
                  << shown(&row.results.data()->bits, types.results);
  }
  if (wrong > kMostShown) ADD_FAILURE() << instruction.code << ": " << wrong << " of " << count << " cases are wrong";
}

}  // namespace

void expectResults(const std::vector<Instruction>& table) {
  std::string text;
  for (std::size_t i = 0; i < table.size(); ++i)
    text += kernelOf(table[i], typesOf(table[i].types), "k" + std::to_string(i));
  Program program = Program::of(text);
  ASSERT_NE(program.get(), nullptr) << program.why();
  for (std::size_t i = 0; i < table.size(); ++i) checkInstruction(program, table[i], "k" + std::to_string(i));
}

}  // namespace tutti::softgpu::test
