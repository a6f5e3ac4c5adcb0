/** What a person answers a broker. */
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
