// The peer on oneDNN.
#include <omp.h>

#include <array>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>

#include "tests/bench/blocked_attention.h"

namespace {

using namespace qkv::bench;

// Matrix products made once for each shape. A primitive is made for the number of threads that will run it.
class Products {
 public:
  void multiply(const Product& p) {
    const Key key{p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.b_transposed ? 1 : 0, p.add ? 1 : 0};
    auto found = made_.find(key);
    if (found == made_.end()) found = made_.emplace(key, make(p)).first;
    dnnl::matmul& product = found->second.product;
    dnnl::memory& a = found->second.a;
    dnnl::memory& b = found->second.b;
    dnnl::memory& c = found->second.c;
    a.set_data_handle(const_cast<float*>(p.a));
    b.set_data_handle(const_cast<float*>(p.b));
    c.set_data_handle(p.c);
    product.execute(stream_, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  }

 private:
  using Key = std::array<int, 8>;
  struct Made {
    dnnl::matmul product;
    dnnl::memory a, b, c;
  };

  static dnnl::memory::desc desc(int rows, int cols, int row_stride, int col_stride) {
    return {{rows, cols}, dnnl::memory::data_type::f32, dnnl::memory::dims{row_stride, col_stride}};
  }

  Made make(const Product& p) {
    const dnnl::memory::desc a = desc(p.m, p.k, p.lda, 1);
    const dnnl::memory::desc b = p.b_transposed ? desc(p.k, p.n, 1, p.ldb) : desc(p.k, p.n, p.ldb, 1);
    const dnnl::memory::desc c = desc(p.m, p.n, p.ldc, 1);
    dnnl::primitive_attr attributes;
    if (p.add) {
      dnnl::post_ops sum;
      sum.append_sum(1);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::primitive_desc made(dnnl::matmul::desc(a, b, c), attributes, engine_);
    return {dnnl::matmul(made), {a, engine_, nullptr}, {b, engine_, nullptr}, {c, engine_, nullptr}};
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::map<Key, Made> made_;
};

void on_omp_threads(int pieces, const std::function<void(int)>& fn) {
#pragma omp parallel for schedule(static, 1)
  for (int piece = 0; piece < pieces; ++piece) fn(piece);
}

}  // namespace

int main(int argc, char** argv) {
  // One set of products for each thread: a primitive's memory objects hold the pointers of the running call.
  static thread_local std::unique_ptr<Products> products;
  const dnnl_version_t* version = dnnl_version();
  const Library library{.name = "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) +
                                "." + std::to_string(version->patch),
                        .multiply = [](const Product& p) { products->multiply(p); },
                        .begin_thread =
                            [] {
                              omp_set_num_threads(1);
                              products = std::make_unique<Products>();
                            },
                        .set_threads = [](int threads) { omp_set_num_threads(threads); },
                        .on_own_threads = on_omp_threads};
  return bench_main(argc, argv, {library.name, [&](const Job& job) { return blocked_setups(library, job); }});
}
