import type { interactionPolicy as Policy } from 'oidc-provider'

/** The library's policy, and a person who decides every time. */
export function alwaysAsk(interactionPolicy: typeof Policy, reason: string) {
  const policy = interactionPolicy.base()
  policy
    .get('login')
    ?.checks.add(
      new interactionPolicy.Check('always', reason, ({ oidc }) => oidc.result?.login === undefined),
    )
  return policy
}
