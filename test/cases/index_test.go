package cases

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// situations is where each situation that broke other tools has its tests: here, or in the folder named. That of several ranks needs
// several processes to be shown in full (dtms/tcp starts them), and the compile cache a GPU's driver, whose part its test plays.
var situations = []struct{ what, where string }{
	{"softmax of very large values and of rows that are all -inf", "TestCase_SoftmaxOfLargeValuesAndMaskedRows TestCase_FullyMaskedQuery dialects/blu:TestAttentionMasks"},
	{"cross entropy with every target ignored, or one out of range", "TestCase_EveryTargetIgnored TestCase_TargetOutOfRange TestCase_OneClass"},
	{"micro-batches with unequal numbers of ignored targets", "TestCase_UnequalMicroBatches"},
	{"where beside an infinite derivative", "TestCase_WhereDoesNotLeakNaN"},
	{"layer norm of rows with a large mean", "TestCase_LayerNormOfLargeMeans TestCase_LayerNormGradientOfLargeMeans"},
	{"more than 2^31 elements", "TestCase_HugeTensor TestCase_TooHugeTensor"},
	{"an embedding index out of range", "TestCase_EmbeddingIndexOutOfRange train/data:TestTokenOutsideTheVocabulary"},
	{"sizes that no block divides", "TestCase_OddSizes"},
	{"tied weights", "TestCase_TiedWeights TestCase_SumsOfManyTerms"},
	{"a bias for batch and sequence", "TestCase_BroadcastBias"},
	{"a gradient through an integer, argmax, a comparison", "TestCase_NoGradientThroughIntegers"},
	{"the norm of a zero vector", "TestCase_NormOfZero"},
	{"tensors without elements or dimensions", "TestCase_EmptyAndRankZero"},
	{"going on in the middle of an epoch", "train:TestResumeIsBitForBit train/data:TestResumeGivesTheVeryNextBatch cmd/blurun:TestResumeIsBitForBitOnCPU"},
	{"a full disk, or a kill, while a checkpoint is written", "train/checkpoint:TestFullDisk train/checkpoint:TestEveryCrashLeavesTheNewestAcknowledgedCheckpoint train:TestKilled cmd/blurun:TestKilledAgainAndAgain"},
	{"weights that another library keeps transposed", "TestCase_TransposedWeights"},
	{"hostile safetensors files", "formats/safetensors:TestRefusesWithTheReason"},
	{"gelu by tanh and by erf", "TestCase_GeluTanhAndErf"},
	{"the norm of large gradients", "TestCase_GradientNorm"},
	{"weight decay on biases and norms", "TestCase_WeightDecayWhere"},
	{"a rank of another program or shape, or one that dies", "dtms/tcp:TestOtherArtifact dtms/tcp:TestOtherSize dtms/tcp:TestKill dtms/local:TestOtherCalls dtms:TestMajority train:TestRanksThatDiffer train:TestRankThatFails train:TestRankThatHangs"},
	{"machine code cut short, or for another GPU or driver", "runtime/cuda:TestCodeThatIsRefused artifact:TestEveryTruncationIsRefused"},
	{"elements that a target does not compute with", "driver:TestErrors"},
	{"any model at all, whatever the order of its operations", "TestRandomModels"},
	{"the same artifact built twice", "TestCase_SameBytesInEveryProcess TestCase_ShuffledOperations"},
}

func TestEverySituationHasATest(t *testing.T) {
	for _, s := range situations {
		for _, where := range strings.Fields(s.where) {
			folder, name, elsewhere := strings.Cut(where, ":")
			if !elsewhere {
				folder, name = "test/cases", where
			}
			files, err := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
			require.NoError(t, err)
			found := false
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				found = found || strings.Contains(string(text), "\nfunc "+name+"(")
			}
			require.True(t, found, "%s: there is no %s", s.what, where)
		}
	}
}

// TestEveryCaseIsListed: the list above names every test of a case in this package.
func TestEveryCaseIsListed(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	listed := map[string]bool{}
	for _, s := range situations {
		for _, where := range strings.Fields(s.where) {
			listed[where] = true
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (TestCase_\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			require.True(t, listed[m[1]], "%s is of no situation", m[1])
		}
	}
}
