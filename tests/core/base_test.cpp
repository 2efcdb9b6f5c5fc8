#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <clocale>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <locale>
#include <random>
#include <stdexcept>
#include <string>

#include "core/base/file.h"
#include "core/base/number_text.h"
#include "core/base/utf8.h"

namespace fs = std::filesystem;
using namespace qkv;

namespace {

// A directory of its own for one test, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "qkv-base-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }
  const fs::path& path() const { return path_; }
  long entries() const { return std::distance(fs::directory_iterator(path_), fs::directory_iterator()); }

 private:
  fs::path path_;
};

// Acts as an unprivileged user for a while where the tests run as root, whom no permission stops.
class Unprivileged {
 public:
  Unprivileged() : was_root_(::geteuid() == 0) {
    if (was_root_) REQUIRE(::seteuid(65534) == 0);
  }
  ~Unprivileged() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  Unprivileged(const Unprivileged&) = delete;
  Unprivileged& operator=(const Unprivileged&) = delete;

 private:
  bool was_root_;
};

std::string content_of(const fs::path& path) {
  const Result<Bytes> bytes = read_file(path);
  REQUIRE(bytes.ok());
  return std::string(as_text(bytes.value()));
}

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

}  // namespace

TEST_SUITE("file") {
  TEST_CASE("bytes come back as written") {
    const Folder folder;
    std::string all_bytes;
    for (int i = 0; i < 100'000; ++i) all_bytes += static_cast<char>(i * 7 % 256);
    for (const std::string& content : {std::string(), std::string("x"), std::string("a\0b\r\n", 5), all_bytes}) {
      REQUIRE(write_file_atomically(folder / "f", content).ok());
      CHECK(content_of(folder / "f") == content);
      CHECK(folder.entries() == 1);
    }
  }

  TEST_CASE("a name without a directory is written to the working directory") {
    const Folder folder;
    const fs::path before = fs::current_path();
    fs::current_path(folder.path());
    const bool written = write_file_atomically("plain", "content").ok();
    fs::current_path(before);
    CHECK(written);
    CHECK(content_of(folder / "plain") == "content");
  }

  TEST_CASE("reading says why it failed") {
    const Folder folder;
    const Result<Bytes> missing = read_file(folder / "missing");
    REQUIRE(!missing.ok());
    CHECK(missing.error().code == ErrorCode::kCannotRead);
    CHECK(missing.error().message == "No such file or directory");

    const Result<Bytes> directory = read_file(folder.path());
    REQUIRE(!directory.ok());
    CHECK(directory.error().code == ErrorCode::kCannotRead);
    CHECK(directory.error().message == "Is a directory");
  }

  TEST_CASE("the size limit is inclusive and holds for files of unknown size") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "ten", "0123456789").ok());
    CHECK(read_file(folder / "ten", 10).ok());
    const Result<Bytes> too_large = read_file(folder / "ten", 9);
    REQUIRE(!too_large.ok());
    CHECK(too_large.error().code == ErrorCode::kBadInput);
    CHECK(too_large.error().message.find("limit of 9 bytes") != std::string::npos);

    const Result<Bytes> endless = read_file("/dev/zero", 1'000'000);
    REQUIRE(!endless.ok());
    CHECK(endless.error().code == ErrorCode::kBadInput);
  }

  TEST_CASE("an unwritable directory keeps its content and gets nothing new") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "old", "old").ok());
    REQUIRE(::chmod((folder / "old").c_str(), 0666) == 0);
    REQUIRE(::chmod(folder.path().c_str(), 0555) == 0);
    {
      const Unprivileged user;
      for (const char* name : {"old", "new"}) {
        const Status status = write_file_atomically(folder / name, "new content");
        REQUIRE(!status.ok());
        CHECK(status.error().code == ErrorCode::kCannotWrite);
        CHECK(status.error().message == "Permission denied");
      }
    }
    REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
    CHECK(folder.entries() == 1);
    CHECK(content_of(folder / "old") == "old");
  }

  TEST_CASE("a read-only file is not replaced") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "f", "kept").ok());
    REQUIRE(::chmod((folder / "f").c_str(), 0444) == 0);
    REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
    {
      const Unprivileged user;
      CHECK(!write_file_atomically(folder / "f", "lost").ok());
    }
    CHECK(content_of(folder / "f") == "kept");
    CHECK(folder.entries() == 1);
  }

  TEST_CASE("a missing directory or a directory in the way is an error") {
    const Folder folder;
    const Status missing = write_file_atomically(folder / "none" / "f", "x");
    REQUIRE(!missing.ok());
    CHECK(missing.error().code == ErrorCode::kCannotWrite);
    const Status directory = write_file_atomically(folder.path(), "x");
    REQUIRE(!directory.ok());
    CHECK(directory.error().message == "Is a directory");
    CHECK(folder.entries() == 0);
  }

  TEST_CASE("a write that fails halfway leaves the old content and no temporary file") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "f", "old").ok());
    struct rlimit before {};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
    const auto previous_handler = ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {1000, before.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const Status status = write_file_atomically(folder / "f", std::string(5000, 'x'));
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
    ::signal(SIGXFSZ, previous_handler);

    REQUIRE(!status.ok());
    CHECK(status.error().code == ErrorCode::kCannotWrite);
    CHECK(status.error().message == "File too large");
    CHECK(content_of(folder / "f") == "old");
    CHECK(folder.entries() == 1);
  }

  TEST_CASE("an existing file keeps its permissions; a new one follows the umask") {
    const Folder folder;
    REQUIRE(write_file_atomically(folder / "f", "1").ok());
    for (const mode_t mode : {mode_t{0600}, mode_t{0640}, mode_t{0755}, mode_t{0666}}) {
      REQUIRE(::chmod((folder / "f").c_str(), mode) == 0);
      REQUIRE(write_file_atomically(folder / "f", "2").ok());
      CHECK(mode_of(folder / "f") == mode);
    }
    const mode_t mask = ::umask(027);
    const Status status = write_file_atomically(folder / "g", "x");
    ::umask(mask);
    REQUIRE(status.ok());
    CHECK(mode_of(folder / "g") == 0640);
  }

  TEST_CASE("a symbolic link keeps pointing where it did") {
    const Folder folder;
    REQUIRE(fs::create_directory(folder / "sub"));
    REQUIRE(write_file_atomically(folder / "sub" / "target", "old").ok());
    fs::create_symlink("sub/target", folder / "relative");
    fs::create_symlink(folder / "relative", folder / "chain");
    fs::create_symlink("sub/absent", folder / "dangling");

    REQUIRE(write_file_atomically(folder / "chain", "new").ok());
    REQUIRE(write_file_atomically(folder / "dangling", "made").ok());
    CHECK(fs::is_symlink(folder / "chain"));
    CHECK(fs::is_symlink(folder / "relative"));
    CHECK(fs::is_symlink(folder / "dangling"));
    CHECK(content_of(folder / "sub" / "target") == "new");
    CHECK(content_of(folder / "sub" / "absent") == "made");
    CHECK(folder.entries() == 4);

    fs::create_symlink("circle", folder / "circle");
    const Status circle = write_file_atomically(folder / "circle", "x");
    REQUIRE(!circle.ok());
    CHECK(circle.error().code == ErrorCode::kCannotWrite);
    CHECK(fs::is_symlink(folder / "circle"));
  }

  TEST_CASE("a pipe takes the bytes and stays a pipe") {
    const Folder folder;
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    const int reader = ::open((folder / "pipe").c_str(), O_RDONLY | O_NONBLOCK);
    REQUIRE(reader >= 0);
    CHECK(write_file_atomically(folder / "pipe", "through").ok());
    char buffer[16] = {};
    CHECK(::read(reader, buffer, sizeof buffer) == 7);
    ::close(reader);
    CHECK(std::string(buffer) == "through");
    CHECK(fs::is_fifo(folder / "pipe"));
  }
}

TEST_SUITE("number_text") {
  TEST_CASE("float32 and float64 round trip through the shortest text, for random bit patterns") {
    std::mt19937_64 random(20240607);
    for (int i = 0; i < 200'000; ++i) {
      const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      const std::optional<float> back = parse_float(format_shortest(value));
      REQUIRE_MESSAGE(back.has_value(), format_shortest(value));
      if (std::isnan(value)) {
        REQUIRE(std::isnan(*back));
      } else {
        REQUIRE_MESSAGE(std::bit_cast<std::uint32_t>(*back) == std::bit_cast<std::uint32_t>(value),
                        format_shortest(value));
      }
      const double wide = std::bit_cast<double>(random());
      if (std::isfinite(wide)) REQUIRE(std::strtod(format_shortest(wide).c_str(), nullptr) == wide);
    }
  }

  TEST_CASE("the shortest text is short") {
    CHECK(format_shortest(0.1f) == "0.1");
    CHECK(format_shortest(1e30f) == "1e+30");
    CHECK(format_shortest(0.1) == "0.1");
    CHECK(format_shortest(1.0 / 3) == "0.3333333333333333");
    CHECK(format_shortest(-0.0f) == "-0");
    const float nan = std::numeric_limits<float>::quiet_NaN();
    CHECK(format_shortest(nan) == "nan");
    CHECK(format_shortest(-nan) == "nan");
    CHECK(format_shortest(-std::numeric_limits<float>::infinity()) == "-inf");
    CHECK(format_shortest(std::numeric_limits<double>::infinity()) == "inf");
  }

  TEST_CASE("fixed decimals") {
    CHECK(format_fixed(1.0, 2) == "1.00");
    CHECK(format_fixed(-0.5, 1) == "−0.5");
    CHECK(format_fixed(-0.5, 1, false) == "-0.5");
    CHECK(format_fixed(-0.0001, 2) == "0.00");
    CHECK(format_fixed(-0.0001, 2, false) == "0.00");
    CHECK(format_fixed(-0.0, 0) == "0");
    CHECK(format_fixed(2.5, 0) == "2");
    CHECK(format_fixed(0.6134, 4) == "0.6134");
    CHECK(format_fixed(1.5, -3) == "2");
    CHECK(format_fixed(std::numeric_limits<double>::max(), 3).size() == 309 + 4);
    CHECK(format_fixed(5e-324, 2000).size() == 1102);
    CHECK(format_fixed(std::nan(""), 2) == "NaN");
    CHECK(format_fixed(HUGE_VAL, 2) == "∞");
    CHECK(format_fixed(-HUGE_VAL, 2) == "−∞");
    CHECK(format_fixed(-HUGE_VAL, 2, false) == "-∞");
  }

  TEST_CASE("values for a person are fixed until that hides the digits") {
    CHECK(format_value(0, 2) == "0.00");
    CHECK(format_value(-0.0, 2) == "0.00");
    CHECK(format_value(1.234, 2) == "1.23");
    CHECK(format_value(999'999, 0) == "999999");
    CHECK(format_value(1e6, 2) == "1.00e+06");
    CHECK(format_value(1.23e8, 2) == "1.23e+08");
    CHECK(format_value(-1.23e8, 2) == "−1.23e+08");
    CHECK(format_value(0.00123, 2) == "1.23e−03");
    CHECK(format_value(-0.00123, 2, false) == "-1.23e-03");
    CHECK(format_value(0.006, 2) == "0.01");
    CHECK(format_value(std::nan(""), 2) == "NaN");
    CHECK(format_value(-HUGE_VAL, 2) == "−∞");
  }

  TEST_CASE("what is a number") {
    CHECK(parse_float("1") == 1.0f);
    CHECK(parse_float(" \t-2.5e3\r\n") == -2500.0f);
    CHECK(parse_float("+4") == 4.0f);
    CHECK(parse_float(".5") == 0.5f);
    CHECK(parse_float("5.") == 5.0f);
    CHECK(parse_float("−1") == -1.0f);
    CHECK(parse_float("1.23e−03") == 1.23e-3f);
    CHECK(parse_float("\u00a0\u30007\u2003") == 7.0f);
    CHECK(parse_float("inf") == HUGE_VALF);
    CHECK(parse_float("+Inf") == HUGE_VALF);
    CHECK(parse_float("-inf") == -HUGE_VALF);
    REQUIRE(parse_float("NaN").has_value());
    CHECK(std::isnan(*parse_float("nan")));
    CHECK(std::signbit(*parse_float("-0")));
    CHECK(parse_float("3.4028235e38") == std::numeric_limits<float>::max());
    CHECK(parse_float("1e-50") == 0.0f);
    CHECK(parse_float("1e-45") == std::numeric_limits<float>::denorm_min());
  }

  TEST_CASE("what is a float64 number") {
    CHECK(parse_double("0.1") == 0.1);
    CHECK(parse_double(" −1e300") == -1e300);
    CHECK(parse_double("5e-324") == std::numeric_limits<double>::denorm_min());
    CHECK(parse_double("inf") == HUGE_VAL);
    CHECK(std::isnan(*parse_double("NaN")));
    for (const char* text : {"", "x", "1,5", "1e400", "1e-400", "--1"}) CHECK_MESSAGE(!parse_double(text), text);
  }

  TEST_CASE("what is not") {
    for (const char* text :
         {"",   " ",  "x",    "1x",       "1 2",    "1,5",  "--1",   "+-1",   "-+1",   "−−1",   "+",    "-", ".",
          "e5", "1e", "0x10", "infinity", "nan(1)", "1e39", "-1e39", "1e400", "1.5.2", "1_000", "\xff", "１"}) {
      CHECK_MESSAGE(!parse_float(text).has_value(), text);
    }
    CHECK(!parse_float(std::string_view("1\0", 2)).has_value());
  }

  TEST_CASE("a decimal comma locale changes nothing") {
    const std::string before = std::setlocale(LC_ALL, nullptr);
    const char* found = nullptr;
    for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE"}) {
      if (!found && std::setlocale(LC_ALL, name)) found = name;
    }
    if (!found) MESSAGE("no decimal-comma C locale is installed: only the C++ global locale is tested");

    struct Comma : std::numpunct<char> {
      char do_decimal_point() const override { return ','; }
      char do_thousands_sep() const override { return '.'; }
      std::string do_grouping() const override { return "\3"; }
    };
    const std::locale previous = std::locale::global(std::locale(std::locale::classic(), new Comma));
    CHECK(format_shortest(1234.5f) == "1234.5");
    CHECK(format_fixed(1234.5, 2) == "1234.50");
    CHECK(format_value(0.00012, 1) == "1.2e−04");
    CHECK(parse_float("1234.5") == 1234.5f);
    CHECK(!parse_float("1234,5").has_value());
    std::locale::global(previous);
    std::setlocale(LC_ALL, before.c_str());
  }
}

TEST_SUITE("utf8") {
  TEST_CASE("every code point round trips and is valid") {
    for (char32_t c = 0; c <= 0x10FFFF; ++c) {
      if (c == 0xD800) c = 0xE000;
      std::string text;
      append_utf8(text, c);
      std::size_t pos = 0;
      REQUIRE(next_code_point(text, pos) == c);
      REQUIRE(pos == text.size());
      REQUIRE(is_valid_utf8(text));
    }
    std::string text;
    append_utf8(text, 0xD800);
    append_utf8(text, 0x110000);
    CHECK(text == "\uFFFD\uFFFD");
  }

  TEST_CASE("invalid bytes become one U+FFFD each") {
    struct Case {
      std::string bytes;
      std::string clean;
    };
    const Case cases[] = {
        {"\x80", "\uFFFD"},
        {"a\xC3", "a\uFFFD"},
        {"\xC0\xAF", "\uFFFD\uFFFD"},                      // overlong "/"
        {"\xE0\x80\xAF", "\uFFFD\uFFFD\uFFFD"},            // overlong
        {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},            // surrogate
        {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
        {"\xF0\x82\x82\xAC", "\uFFFD\uFFFD\uFFFD\uFFFD"},  // overlong
        {"\xE8\xB2x", "\uFFFD\uFFFDx"},                    // cut short, then text
        {"\xFF\xE8\xB2\x93", "\uFFFD\xE8\xB2\x93"},
    };
    for (const Case& c : cases) {
      CHECK(!is_valid_utf8(c.bytes));
      CHECK(sanitize_utf8(c.bytes) == c.clean);
      CHECK(is_valid_utf8(sanitize_utf8(c.bytes)));
    }
    CHECK(is_valid_utf8("貓 追 老鼠 \uFFFD"));
    CHECK(sanitize_utf8("貓 追 老鼠 \uFFFD") == "貓 追 老鼠 \uFFFD");
    CHECK(is_valid_utf8(""));
    std::size_t pos = 0;
    CHECK(next_code_point("", pos) == 0xFFFD);
    CHECK(pos == 0);
  }

  TEST_CASE("character classes") {
    for (const char32_t c : U" \t\n\r\u0085\u00a0\u2009\u2028\u202f\u3000") {
      if (c) CHECK(is_white_space(c));
    }
    for (const char32_t c : U"a_\u200b\u200d\ufeff\u2060貓") CHECK(!is_white_space(c));
    for (const char32_t c : U"貓追老鼠々〇ひらカター한ㄅㆠ𠀀𫝀") {
      if (c) CHECK_MESSAGE(is_cjk(c), static_cast<unsigned>(c));
    }
    for (const char32_t c : U"aé。、・ж🙂ᄀ\u3099Ａ１") CHECK_MESSAGE(!is_cjk(c), static_cast<unsigned>(c));
    for (const char32_t c : U"\u0301\u0308\ufe0f\u200d\U0001F3FD\u3099\u093f\u20e3\U000E0101") {
      if (c) CHECK_MESSAGE(joins_previous(c), static_cast<unsigned>(c));
    }
    for (const char32_t c : U"aé貓🙂 \u200b") CHECK_MESSAGE(!joins_previous(c), static_cast<unsigned>(c));
  }
}
