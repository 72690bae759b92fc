// A shared object that is no plug-in: it has no InitPlugin.
int tarn_test_no_plugin(void);

__attribute__((visibility("default"))) int tarn_test_no_plugin(void) {
  return 0;
}
