"""The same losses inside torch and jax: `frontends.torch.loss_module` and `frontends.jax.loss_function`.

Only its own module imports a framework, and each framework has its own extra: `pip install "decidewise[torch]"` or
`pip install "decidewise[jax]"`.
"""
