// real.h - the type that the layers compute in.
//
// The sources of this folder are plain C over |net_real|. They are compiled
// twice: as they stand for float, and with NET_F64 for double, which is what
// gradients are checked in. So that a program can hold both, the double twin
// of each function has a name of its own, given below; a name that is missing
// here is defined twice, and the linker says so.
#ifndef TARN_EXAMPLES_NETS_REAL_H_
#define TARN_EXAMPLES_NETS_REAL_H_

#ifdef NET_F64

typedef double net_real;

#define net_add net_add_f64
#define net_batch_make net_batch_make_f64
#define net_blas_one_thread net_blas_one_thread_f64
#define net_columns_return net_columns_return_f64
#define net_columns_take net_columns_take_f64
#define net_conv_backward net_conv_backward_f64
#define net_conv_forward net_conv_forward_f64
#define net_conv_work net_conv_work_f64
#define net_decay_loss net_decay_loss_f64
#define net_gemm net_gemm_f64
#define net_init_kaiming net_init_kaiming_f64
#define net_linear_backward net_linear_backward_f64
#define net_linear_forward net_linear_forward_f64
#define net_mean_backward net_mean_backward_f64
#define net_mean_forward net_mean_forward_f64
#define net_relu_backward net_relu_backward_f64
#define net_relu_forward net_relu_forward_f64
#define net_relu_mask_backward net_relu_mask_backward_f64
#define net_relu_mask_forward net_relu_mask_forward_f64
#define net_sgd_step net_sgd_step_f64
#define net_softmax_loss net_softmax_loss_f64

#else

typedef float net_real;

#endif

#endif  // TARN_EXAMPLES_NETS_REAL_H_
