// Runs the scripts of sessions and compares the steps that they save with ours.
#pragma once

#include <cmath>
#include <limits>

#include "core/attention/steps.h"
#include "core/tensor_io/tensor_file.h"
#include "tests/core/code_support.h"

namespace qkv::test {

// How far two float64 computations of the same steps may be apart: sums in another order, exp and tanh of another
// library. k·eps·magnitude, carried from step to step.
class StepBounds {
 public:
  StepBounds(const Problem& problem, const Shapes& s, const MatrixTable<MatrixD>& steps) : steps_(&steps) {
    constexpr double kEps = std::numeric_limits<double>::epsilon();
    const AttentionOptions& options = problem.options;
    const auto inner = static_cast<double>(s.d_k), keys = static_cast<double>(s.nk);
    const auto model = static_cast<double>(s.d_model), width = static_cast<double>(s.heads * s.d_v);
    const auto projected = [&](MatrixKind w, MatrixKind b) {
      return (model + 2) * kEps * (model * largest(MatrixKind::kX) * largest(w) + largest(b));
    };
    q = projected(MatrixKind::kWq, MatrixKind::kBq);
    k = projected(MatrixKind::kWk, MatrixKind::kBk);
    v = projected(MatrixKind::kWv, MatrixKind::kBv);
    // A rope makes a number of two; its angle is off by an ulp of itself, up to the highest position.
    const double turned = options.rope ? 2 : 1;
    const double angle = options.rope ? static_cast<double>(s.nq + s.nk) : 0;
    const double q_max = largest(MatrixKind::kQ), k_max = largest(MatrixKind::kK), v_max = largest(MatrixKind::kV);
    const double product = turned * inner * q_max * k_max;
    scores = (inner + angle + 4) * kEps * product + turned * inner * (q * k_max + k * q_max);
    const double scale = std::abs(effective_scale(options, s.d_k));
    scaled = scale * scores +
             8 * kEps *
                 (scale * product + static_cast<double>(options.softcap.value_or(0)) + largest(MatrixKind::kScaled) +
                  largest(MatrixKind::kBias) + (options.alibi ? static_cast<double>(s.nq + s.nk) : 0));
    attn = std::min(1.0, 2 * scaled + (2 * keys + 16) * kEps);  // of a weight, which is at most 1, relative
    heads_out = attn * v_max + 2 * v;
    out = width * largest(MatrixKind::kWo) * heads_out +
          (width + 2) * kEps * (width * largest(MatrixKind::kWo) * v_max + largest(MatrixKind::kBo));
  }

  double of(MatrixKind kind) const {
    switch (kind) {
      case MatrixKind::kQ:
        return q;
      case MatrixKind::kK:
        return k;
      case MatrixKind::kV:
        return v;
      case MatrixKind::kScores:
        return scores;
      case MatrixKind::kScaled:
        return scaled;
      case MatrixKind::kAttn:
        return attn;
      case MatrixKind::kOut:
        return out;
      default:
        return heads_out;
    }
  }

 private:
  // Of the finite cells of all heads; 0 where there is no such matrix.
  double largest(MatrixKind kind) const {
    double most = 0;
    for (const MatrixD& matrix : steps_->heads(kind)) {
      for (Index n = 0; n < matrix.size(); ++n) {
        const double size = std::abs(matrix.data()[n]);
        if (std::isfinite(size)) most = std::max(most, size);
      }
    }
    return most;
  }

  const MatrixTable<MatrixD>* steps_;
  double q = 0, k = 0, v = 0, scores = 0, scaled = 0, attn = 0, heads_out = 0, out = 0;
};

inline bool is_close(double got, double want, double bound) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  return got == want || std::abs(got - want) <= bound;
}

inline void check_kind(const TensorFile& file, MatrixKind kind, const MatrixTable<MatrixD>& steps, double bound) {
  const std::vector<MatrixD>& heads = steps.heads(kind);
  const std::string name(file_key(kind));
  CAPTURE(name);
  REQUIRE((file.find(name) != nullptr) == !heads.empty());
  if (heads.empty()) return;
  const Result<Tensor64> tensor = file.read_float64(name);
  REQUIRE_MESSAGE(tensor.ok(), tensor.error().message);
  const auto count = static_cast<std::size_t>(heads[0].size());
  REQUIRE(tensor.value().values.size() == heads.size() * count);
  REQUIRE(tensor.value().shape.back() == static_cast<std::uint64_t>(heads[0].cols()));
  double worst = 0;
  Index wrong = 0;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    for (std::size_t n = 0; n < count; ++n) {
      const double got = tensor.value().values[h * count + n], want = heads[h].data()[n];
      if (!is_close(got, want, bound)) ++wrong;
      if (std::isfinite(got - want)) worst = std::max(worst, std::abs(got - want));
    }
  }
  CHECK_MESSAGE(wrong == 0, wrong << " cells differ, by up to " << worst << "; allowed " << bound);
}

// What the script of a session saved is what we compute.
inline void check_steps(const std::string& stem, const Problem& problem) {
  const Result<TensorFile> file = TensorFile::open(stem + ".steps.npz");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  const Shapes shapes = check_shapes(problem).value();
  const Result<MatrixTable<MatrixD>> steps = steps_in_float64(problem);
  REQUIRE(steps.ok());
  const StepBounds bounds(problem, shapes, steps.value());
  for (const MatrixKind kind :
       {MatrixKind::kQ, MatrixKind::kK, MatrixKind::kV, MatrixKind::kScores, MatrixKind::kScaled, MatrixKind::kAttn,
        MatrixKind::kHeadsOut, MatrixKind::kConcat, MatrixKind::kOut}) {
    check_kind(file.value(), kind, steps.value(), bounds.of(kind));
  }
  const KeepMatrix keep = keep_matrix(problem.options, shapes.nq, shapes.nk);
  const Result<TensorFile> kept = TensorFile::open(stem + ".keep.npy");
  REQUIRE_MESSAGE(kept.ok(), kept.error().message);
  const Result<Tensor> saved = kept.value().read(kept.value().tensors()[0].name);
  REQUIRE(saved.ok());
  CHECK(saved.value().values == std::vector<float>(keep.data(), keep.data() + keep.size()));
}

// Runs all `scripts` of a folder, "0.py", "1.py", …, each saving its steps beside it ("0.steps.npz", keep as
// "0.keep.npy" too), in one Python, since
// starting NumPy takes longer than they do. Warnings are errors. What went wrong, one line each; empty: nothing.
// `prelude` runs first.
inline std::string run_scripts(const std::string& python, const TempFolder& folder, std::size_t count,
                               const std::string& prelude = {}) {
  write_text(
      folder / "driver.txt",
      std::string("import contextlib, io, runpy, sys, warnings\n"
                  "import numpy as np\n"
                  "warnings.simplefilter('error')\n") +
          prelude +
          "for n in range(int(sys.argv[2])):\n"
          "    stem = f'{sys.argv[1]}/{n}'\n"
          "    said = io.StringIO()\n"
          "    kept, sys.argv = sys.argv, [stem + '.py', stem + '.steps.npz']\n"
          "    try:\n"
          "        with contextlib.redirect_stdout(said):\n"
          "            runpy.run_path(stem + '.py', run_name='__main__')\n"
          "        if 'attn' not in said.getvalue() or 'out' not in said.getvalue(): print(n, 'prints nothing')\n"
          "        steps = dict(np.load(stem + '.steps.npz'))\n"
          "        np.savez(stem + '.steps.npz', **{name: np.ascontiguousarray(steps[name]) for name in steps})\n"
          "        keep = steps['keep']\n"
          "        if keep.dtype != np.uint8: print(n, 'keep is', keep.dtype)\n"
          "        np.save(stem + '.keep.npy', keep.astype(np.float32))\n"
          "    except BaseException as error:\n"
          "        print(n, repr(error))\n"
          "    sys.argv = kept\n");
  Process process({python, folder / "driver.txt", folder.path().string(), std::to_string(count)});
  const Finished finished = process.wait(300);
  if (finished.exit_code != 0) return "Python ended with " + std::to_string(finished.exit_code) + ": " + finished.err;
  return finished.out;
}

}  // namespace qkv::test
