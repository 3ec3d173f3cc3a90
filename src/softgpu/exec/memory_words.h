// Accesses of real memory for weak memory: each as whole as a GPU's, while other engines look.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::softgpu {

/// One access, whole where it has 4, 8 or 16 bytes and is aligned (16: in two halves where the host has no such store).
/// What it shows is visible before what is written afterwards.
void writeMemory(std::uintptr_t to, const unsigned char* from, std::size_t bytes);
/// writeMemory(), and what was there: at once for 4 and 8 aligned bytes, so that no atomic operation comes in between.
void exchangeMemory(std::uintptr_t to, const unsigned char* from, unsigned char* held, std::size_t bytes);
/// One access, of acquire order. 16 bytes: in two halves, the second one first.
void readMemory(unsigned char* to, std::uintptr_t from, std::size_t bytes);

}  // namespace tutti::softgpu
