/** A person's answers to the broker. */
export const answers = {
  taxId: '86 095 742 719',
  taxIdType: 'DEU_TAX_ID',
  fundingSources: ['savings'],
  disclosures: {
    isControlPerson: false,
    isAffiliatedExchangeOrFinra: false,
    isPoliticallyExposed: false,
    immediateFamilyExposed: false,
  },
  acceptsAgreements: true,
}

/** A verified person's data, for the broker. */
export function describeApplicant(firstName: string, email: string) {
  return {
    firstName,
    lastName: 'Lovelace',
    dateOfBirth: '1990-12-10',
    country: 'DE',
    address: { street: 'Unter den Linden 1', city: 'Berlin', postalCode: '10117' },
    email,
    phone: '+493012345678',
  }
}
