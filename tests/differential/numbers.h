// Inputs whose reductions are exact in whatever order they are made, and these reductions, one element after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "differential/dice.h"
#include "nccl.h"

namespace differential {

/// Whether the results of this reduction over `ranks` ranks are known to the bit. Not so where floats are divided by
/// what is no power of two.
bool isExact(ncclDataType_t type, ncclRedOp_t op, int ranks);

/// Writes `count` elements for one of `ranks` ranks. Integers: any bits. Floats: small whole numbers for sums and
/// averages (positive ones where isExact() is false), powers of two for products, any number for max and min.
void fillInput(Dice& dice, ncclDataType_t type, ncclRedOp_t op, int ranks, std::size_t count, std::uint8_t* out);

/// Writes one factor of kPreMulSum that keeps its sums exact.
void fillFactor(Dice& dice, ncclDataType_t type, std::uint8_t* out);

/// Reduces `count` elements of every input into `out`. `factors`: one per input for kPreMulSum, else empty. `values`
/// receives the results as numbers where isExact() is false, and stays empty otherwise.
void reduce(ncclDataType_t type, ncclRedOp_t op, const std::vector<std::vector<std::uint8_t>>& inputs,
            const std::vector<const std::uint8_t*>& factors, std::size_t count, std::uint8_t* out,
            std::vector<double>* values);

}  // namespace differential
