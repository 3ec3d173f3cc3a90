// Prints the PTX of images (fatbins, PTX) as the software GPU reads them: ptx_text FILE...
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "softgpu/ptx/fatbin.h"

int main(int count, char** names) {
  constexpr std::uint32_t kCapability = 90;
  for (int i = 1; i < count; ++i) {
    std::ifstream file(names[i], std::ios::binary);
    const std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    try {
      std::fputs(tutti::softgpu::ptx::ptxOf(image.c_str(), image.size(), kCapability).c_str(), stdout);
    } catch (const tutti::softgpu::ptx::ImageError& error) {
      std::fprintf(stderr, "ptx_text: %s: %s\n", names[i], error.what.c_str());
      return 1;
    }
  }
  return 0;
}
