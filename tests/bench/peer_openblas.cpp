// The peer on OpenBLAS.
#include <cblas.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/bench/blocked_attention.h"

namespace {

using namespace qkv::bench;

void multiply(const Product& p) {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, p.b_transposed ? CblasTrans : CblasNoTrans, p.m, p.n, p.k, 1, p.a, p.lda,
              p.b, p.ldb, p.add ? 1 : 0, p.c, p.ldc);
}

// The kernels for this processor's instructions where OpenBLAS chose those of a lesser one, as it does with processors
// that are newer than itself; nullptr where its choice is good.
const char* better_kernels() {
#if defined(__x86_64__)
  const std::string chosen = openblas_get_corename();
  const auto is_one_of = [&](std::initializer_list<const char*> names) {
    return std::find(names.begin(), names.end(), chosen) != names.end();
  };
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return is_one_of({"SkylakeX", "Cooperlake", "SapphireRapids"}) ? nullptr : "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !is_one_of({"Haswell", "Zen"})) {
    return __builtin_cpu_is("amd") ? "Zen" : "Haswell";
  }
#endif
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  // OpenBLAS reads the variable while it is loaded, so the program starts itself once more.
  const char* kernels = better_kernels();
  if (kernels != nullptr && std::getenv("OPENBLAS_CORETYPE") == nullptr) {
    setenv("OPENBLAS_CORETYPE", kernels, 1);
    execv("/proc/self/exe", argv);
  }
  const Library library{
      .name = "OpenBLAS " + std::string(openblas_get_config()).substr(9, 6) + " " + openblas_get_corename(),
      .multiply = multiply,
      .set_threads = openblas_set_num_threads};
  return bench_main(argc, argv, {library.name, [&](const Job& job) { return blocked_setups(library, job); }});
}
