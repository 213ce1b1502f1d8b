"""Programs that pickle compiled functions and need more than the core."""

GRID = """
import numpy as np
import dyncomp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

@dyncomp.compile(backend="eager")
def features(x):
    return np.hstack([x, np.sin(x) * x])

class Ridge(RegressorMixin, BaseEstimator):
    def __init__(self, alpha=1.0, score_with=None):
        self.alpha, self.score_with = alpha, score_with
    @dyncomp.compile(backend="eager")
    def fit(self, x, y):
        self.coef_ = np.linalg.solve(x.T @ x + self.alpha * np.eye(x.shape[1]), x.T @ y)
        return self
    @dyncomp.compile(backend="eager")
    def predict(self, x):
        return x @ self.coef_

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    y = x.sum(axis=1) + np.sin(x[:, 0]) * x[:, 0]
    found = []
    for jobs in (1, 2):
        model = make_pipeline(FunctionTransformer(features), Ridge())
        search = GridSearchCV(model, {"ridge__alpha": [0.01, 1.0, 100.0]}, cv=3, n_jobs=jobs)
        search.fit(x, y)
        found.append((search.best_params_, search.cv_results_["mean_test_score"].round(9).tolist()))
    assert found[0] == found[1], found
    print(found[0][0])
"""

NETWORK = """
import cloudpickle, copy, pickle
import torch
import dyncomp

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.act = dyncomp.compile(lambda x: x.relu() * SCALE)
    @dyncomp.compile
    def forward(self, x):
        return self.act(self.linear(x))

SCALE = 2.0
net, x = Net(), torch.ones(2, 3)
wanted = (net.linear(x).relu() * 2).detach()
for whole in (net, dyncomp.compile(net), net.forward, net.act):
    for again in (cloudpickle.loads(cloudpickle.dumps(whole)), pickle.loads(pickle.dumps(whole)),
                  copy.deepcopy(whole), copy.copy(whole)):
        with torch.no_grad():
            found = again(net.linear(x)) if whole is net.act else again(x)
        assert torch.equal(found, wanted), whole
assert dyncomp.stats()["internal_errors"] == 0
print("ok")
"""
