// A plan in words.
#pragma once

#include <string>

namespace tutti::comm {

struct Plan;
struct PlanContext;

/// Tells the TUNING log what was weighed and chosen. Prints nothing, and costs nothing, where that log is off.
void logDecisions(const PlanContext& context, const Plan& plan);

/// A plan as text, one line for each launch and each of its works: for tests and for people.
std::string describePlan(const Plan& plan);

}  // namespace tutti::comm
