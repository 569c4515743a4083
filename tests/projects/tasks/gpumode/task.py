input_t = output_t = object
