/** What deciding on card purchases needs, out of the gateway's services. */
import { pullForPurchase } from '../wallets/escrow/escrow.ts'
import { readCoverages } from '../wallets/reconcile/read-coverage.ts'
import type { CardAuthorizationDependencies } from './authorize.ts'

type Services = Omit<CardAuthorizationDependencies, 'readCoverages' | 'knownCards' | 'pull' | 'parsePolicy'> &
  Parameters<typeof readCoverages>[0] &
  Parameters<typeof pullForPurchase>[0]

/** @param knownCards remembered cards; absent: none. */
export function cardAuthorization(
  services: Services,
  parsePolicy: CardAuthorizationDependencies['parsePolicy'],
  knownCards: CardAuthorizationDependencies['knownCards'] = new Map(),
): CardAuthorizationDependencies {
  return {
    ...services,
    parsePolicy,
    readCoverages: (accountId) => readCoverages(services, accountId),
    knownCards,
    pull: (wanted, withinMs) => pullForPurchase(services, wanted, withinMs),
  }
}
