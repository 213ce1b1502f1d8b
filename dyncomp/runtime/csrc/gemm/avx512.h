/* The registers of AVX-512, and the tiles that they hold. */
constexpr int kVectorBytes = 64;
constexpr int kRegisters = 32;
constexpr int kTileVectors = 4;
constexpr int kTileRowsMost = 12;
