// What is to go wrong, for tests of those who use the plugin: SWITCH_COLLNET_FAULTS, a list like
// "null-request=3@1,late=50,wrong=2". Each word is a fault, after = its value, after @ the node that it happens on
// (without: on all). README.md has the table.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "protocol.h"

namespace switch_collnet {

struct Fault {
  std::string name;
  std::string value;  ///< empty: none was given
  int node = -1;      ///< -1: all
  long number() const { return std::atol(value.c_str()); }
};

class Faults {
 public:
  /// Empty, or what is wrong with the list: a test with a slip of the pen would test nothing.
  std::string parse(const std::string& list) {
    faults_.clear();
    std::string rest = list;
    while (!rest.empty()) {
      const std::string word = cut(rest, ',');
      std::string named = word;
      Fault fault;
      std::string node = named;
      named = cut(node, '@');
      fault.value = named;
      fault.name = cut(fault.value, '=');
      if (!node.empty()) fault.node = std::atoi(node.c_str());
      if (const std::string why = objection(fault, node); !why.empty()) return "'" + word + "' " + why;
      faults_.push_back(fault);
    }
    return "";
  }

  /// The fault of that name that concerns a node (-1: any); null: there is none.
  const Fault* find(const std::string& name, int node = -1) const {
    for (const Fault& fault : faults_) {
      if (fault.name == name && (fault.node < 0 || node < 0 || fault.node == node)) return &fault;
    }
    return nullptr;
  }
  bool has(const std::string& name, int node = -1) const { return find(name, node) != nullptr; }
  /// Whether this is the time at which it happens: its value, which counts from 1.
  bool strikes(const std::string& name, int node, std::uint64_t time) const {
    const Fault* const fault = find(name, node);
    return fault != nullptr && fault->number() == static_cast<long>(time);
  }
  /// Whether reductions of that kind are not supported ("no-support").
  bool forbids(int type, int op) const {
    for (const Fault& fault : faults_) {
      std::string reduction = fault.value;
      const std::string typeName = cut(reduction, ':');
      if (fault.name == "no-support" && (typeName == "*" || typeName == nameOfType(type)) &&
          (reduction == "*" || reduction == nameOfOp(op))) {
        return true;
      }
    }
    return false;
  }

 private:
  /// Cuts off what is in front of a character; all of it where that is not there.
  static std::string cut(std::string& text, char at) {
    const std::size_t end = text.find(at);
    const std::string front = text.substr(0, end);
    text = end == std::string::npos ? "" : text.substr(end + 1);
    return front;
  }
  static std::string objection(const Fault& fault, const std::string& node) {
    enum class Value { None, Number, Reduction };
    enum class Where { Node, Process };  // what @ may say
    struct Known {
      const char* name;
      Value value;
      Where where;
    };
    static constexpr Known kKnown[] = {
        // of the plugin
        {"refuse-init", Value::None, Where::Process},
        {"refuse-devices", Value::None, Where::Process},
        {"refuse-properties", Value::None, Where::Process},
        {"refuse-listen", Value::None, Where::Process},
        {"refuse-support", Value::None, Where::Process},
        {"refuse-close", Value::None, Where::Process},
        {"refuse-connect", Value::None, Where::Node},
        {"no-collnet", Value::None, Where::Node},
        {"hang-connect", Value::None, Where::Node},
        {"no-support", Value::Reduction, Where::Process},
        {"no-allgather", Value::None, Where::Process},
        {"no-reducescatter", Value::None, Where::Process},
        {"refuse-register", Value::Number, Where::Node},
        {"null-request", Value::Number, Where::Node},
        {"post-error", Value::Number, Where::Node},
        {"test-error", Value::Number, Where::Node},
        // of the switch
        {"late", Value::Number, Where::Node},
        {"lost", Value::Number, Where::Node},
        {"wrong", Value::Number, Where::Node},
        {"short", Value::Number, Where::Node},
        {"die", Value::Number, Where::Process},
    };
    for (const Known& known : kKnown) {
      if (fault.name != known.name) continue;
      if (known.where == Where::Process && !node.empty()) return "concerns a whole process: @ has no place there";
      if (node.find_first_not_of("0123456789") != std::string::npos) return "has a node that is no number";
      const bool number = !fault.value.empty() && fault.value.find_first_not_of("0123456789") == std::string::npos;
      if (known.value == Value::Number && !number) return "needs a number, as in " + fault.name + "=3";
      if (known.value == Value::None && !fault.value.empty()) return "takes no value";
      if (known.value == Value::Reduction) return reductionObjection(fault.value);
      return "";
    }
    return "is no fault";
  }
  static std::string reductionObjection(std::string value) {
    const std::string typeName = cut(value, ':');
    bool known = typeName == "*";
    for (int type = 0; type < ncclNumTypes; ++type) known = known || typeName == nameOfType(type);
    bool reduction = value == "*";
    for (const int op : {ncclSum, ncclProd, ncclMin, ncclMax}) reduction = reduction || value == nameOfOp(op);
    return known && reduction ? "" : "needs a type and an operation, as in float16:sum or *:prod";
  }

  std::vector<Fault> faults_;
};

}  // namespace switch_collnet
