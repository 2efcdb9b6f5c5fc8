// Tables as text, from a file and from the clipboard.
#include "core/tensor_io/table.h"
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using qkv::fuzz::require;
  const qkv::Result<qkv::Table> parsed = qkv::parse_table({reinterpret_cast<const char*>(data), size});
  if (parsed.ok()) {
    const qkv::Table& table = parsed.value();
    require(table.rows > 0 && table.columns > 0);
    require(table.values.size() == table.rows * table.columns && table.values32.size() == table.values.size());
    require(table.column_names.empty() || table.column_names.size() == table.columns);
    require(table.row_names.empty() || table.row_names.size() == table.rows);
  } else {
    require(parsed.error().message.find('\n') == std::string::npos);
  }
  qkv::fuzz::open_and_read({data, size});
  return 0;
}
