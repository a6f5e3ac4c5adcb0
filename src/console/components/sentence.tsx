/** Sentences about a policy, with their values standing out. */
import type { Policy } from '../../client/operations.ts'
import { describePolicy, type Sentence } from '../words/policy.ts'
import { Untrusted } from './quote.tsx'

function Words({ words }: { readonly words: Sentence }) {
  return (
    <>
      {words.map((word) =>
        typeof word === 'string' ? (
          word
        ) : (
          <b>
            <Untrusted>{word.value}</Untrusted>
          </b>
        ),
      )}
    </>
  )
}

export function PolicyWords({ policy }: { readonly policy: Policy }) {
  return (
    <>
      {describePolicy(policy).map((words, position) => (
        <p class="wrap" key={position}>
          <Words words={words} />
        </p>
      ))}
    </>
  )
}
